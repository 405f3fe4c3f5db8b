// The CUDA driver, loaded at the first request for a CUDA device: libcuda.so.1 of the machine, or the library that the
// environment variable WARP_CUDA_DRIVER selects ("emulated", "none", or a path). Nothing of it is linked, and its
// functions are declared here, because cuda.h may not be shipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weft::runtime::cuda {

using CUresult = int;
using CUdevice = int;
using CUdevice_attribute = int;
using CUjit_option = int;
using CUjitInputType = int;
using CUmemAccess_flags = int;
using CUoccupancyB2DSize = size_t (*)(int);
using CUmemPool_attribute = int;
using CUpointer_attribute = int;
using CUdeviceptr = unsigned long long;
using cuuint64_t = std::uint64_t;
using CUcontext = struct DriverContext*;
using CUmodule = struct DriverModule*;
using CUlinkState = struct DriverLink*;
using CUfunction = struct DriverFunction*;
using CUstream = struct DriverStream*;
using CUevent = struct DriverEvent*;
using CUmemoryPool = struct DriverPool*;
struct CUuuid {
    char bytes[16];
};
struct CUipcMemHandle {
    char reserved[64];
};
struct CUipcEventHandle {
    char reserved[64];
};
struct CUmemLocation {
    int type, id;
};
struct CUmemAccessDesc {
    CUmemLocation location;
    CUmemAccess_flags flags;
};

// Captures and graphs.
using CUgraph = struct DriverGraph*;
using CUgraphNode = struct DriverGraphNode*;
using CUgraphExec = struct DriverGraphExec*;
using CUuserObject = struct DriverUserObject*;
using CUgraphConditionalHandle = unsigned long long;
using CUstreamCaptureMode = int;
using CUstreamCaptureStatus = int;
using CUhostFn = void (*)(void*);
// Of launches: 4 is the one that makes clusters, 6 the one that lets a launch begin before the one in front has ended.
struct CUlaunchAttribute {
    int id;
    int reserved;
    union {
        char value[64];
        struct {
            unsigned x, y, z;
        } cluster;
        int is_programmatic;
    };
};
static_assert(sizeof(CUlaunchAttribute) == 72);
struct CUlaunchConfig {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    CUstream stream;
    CUlaunchAttribute* attributes;
    unsigned attribute_count;
};
static_assert(sizeof(CUlaunchConfig) == 56);
using CUfunction_attribute = int;
struct CUgraphEdgeData;  // always null
struct CUgraphNodeParams {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        struct {
            CUgraphConditionalHandle handle;
            int type;
            unsigned int size;
            CUgraph* bodies;  // set by the driver
            CUcontext context;
        } conditional;
    };
    long long reserved2;
};
static_assert(sizeof(CUgraphNodeParams) == 256);

// Values of cuda.h.
inline constexpr CUresult kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kUnsupportedPtx = 222, kInvalidHandle = 400,
                          kInvalidValue = 1, kInvalidContext = 201, kMapFailed = 205, kNotReady = 600,
                          kCapturedEvent = 907;
enum Attribute : int {
    kMaxThreadsPerBlock = 1,
    kMaxSharedMemoryPerBlock = 8,
    kMultiprocessorCount = 16,
    kThreadsOfMultiprocessor = 39,
    kUnifiedAddressing = 41,
    kComputeCapabilityMajor = 75,
    kComputeCapabilityMinor = 76,
    kMaxSharedMemoryPerBlockOptin = 97,
    kMemoryPoolsSupported = 115,
};
inline constexpr CUfunction_attribute kMostThreadsOfBlock = 0, kLocalBytes = 3, kRegisters = 4,
                                      kMayHaveLargeClusters = 14;
inline constexpr int kClusterDimension = 4, kProgrammaticSerialization = 6;
inline constexpr unsigned kManagedForAll = 1;  // every stream reaches managed memory
inline constexpr CUjit_option kErrorLogBuffer = 5, kErrorLogBufferBytes = 6, kGenerateLines = 13;
inline constexpr CUjitInputType kInputIsPtx = 1;
inline constexpr CUmemPool_attribute kReleaseThreshold = 4, kUsedMemory = 7, kMostUsedMemory = 8;
inline constexpr CUpointer_attribute kPointerContext = 1, kPointerMemoryType = 2, kPointerDeviceOrdinal = 9,
                                     kPointerRangeSize = 12;
inline constexpr unsigned kLazyPeerAccess = 1;
inline constexpr unsigned kMemoryOfHost = 1, kMemoryOfDevice = 2;
inline constexpr CUresult kPeerAccessAlreadyEnabled = 704, kPeerAccessNotEnabled = 705;
inline constexpr int kLocationIsDevice = 1;
inline constexpr CUmemAccess_flags kNoAccess = 0, kReadAndWrite = 3;
inline constexpr unsigned kPortable = 1;  // pinned memory is valid in all contexts
inline constexpr CUstreamCaptureMode kCaptureRelaxed = 2;
inline constexpr CUstreamCaptureStatus kCaptureNone = 0, kCaptureActive = 1;
inline constexpr int kConditionalNode = 13, kConditionIf = 0, kConditionWhile = 1;
inline constexpr unsigned kSetDependencies = 1, kNoTiming = 2, kInterprocess = 4, kNonBlocking = 1,
                          kNoDestructorSync = 1, kMoveUserObject = 1, kRecordedByGraph = 1, kWaitedForByGraph = 1;

struct Driver {
#define WEFT_DRIVER(name, parameters) CUresult(*name) parameters = nullptr;
#define WEFT_DRIVER_RECENT(name, parameters) CUresult(*name) parameters = nullptr;
#include "runtime/cuda/driver.def"
#undef WEFT_DRIVER
#undef WEFT_DRIVER_RECENT
    // Of the emulated device only: the fault of the last kernel, in words.
    const char* (*last_fault)() = nullptr;
    // Of the emulated device only: tells it the requested bytes of an allocation that is larger.
    void (*note_asked)(CUdeviceptr address, std::size_t bytes) = nullptr;
    int version = 0;  // 12080 is 12.8
    int devices = 0;
    int process = 0;  // that loaded it: a forked process cannot use CUDA
    bool is_emulated() const { return last_fault != nullptr; }
    // Whether graphs may have conditions.
    bool has_conditions() const {
        return version >= 12040 && cuStreamGetCaptureInfo_v3 && cuStreamUpdateCaptureDependencies_v2 &&
               cuStreamBeginCaptureToGraph && cuGraphAddNode_v2 && cuGraphConditionalHandleCreate;
    }
};

// Null if there is no working driver; driver_problem() has the reason.
const Driver* find_driver();
const std::string& driver_problem();
// The driver that devices were made from. Precondition: there is one.
const Driver& driver();

// The driver's name of a failure, its number and its text.
std::string error_text(CUresult result);
// Throws UsageError with the driver's name and text of the failure if `result` is one. `call` is the driver function;
// `device` is the name of the device.
void check(CUresult result, const char* call, const std::string& device);

// Destroys a handle if failures cannot be reported: a failed call is tried once more.
template <class Handle>
void destroy_quietly(CUresult (*destroy)(Handle), Handle handle) noexcept {
    if (destroy(handle) != kSuccess) destroy(handle);
}

}  // namespace weft::runtime::cuda
