#pragma once
// The CUDA driver's interface, declared here because NVIDIA's cuda.h may not be shipped.
// emulator/tests/test_driver_abi.cpp compares all of it with cuda.h if that is installed.
#include <cstddef>
#include <cstdint>

namespace weft::emulator {

enum CUresult : int {
#define WEFT_RESULT(name, number, text) name = number,
#include "driver/codes.def"
};
enum CUdevice_attribute : int {
#define WEFT_ATTRIBUTE(name, number, value) name = number,
#include "driver/codes.def"
};
enum DriverConstant : int {
#define WEFT_CONSTANT(name, number) name = number,
#include "driver/codes.def"
};

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using cuuint64_t = uint64_t;
using CUjit_option = int;
using CUjitInputType = int;
using CUfunction_attribute = int;
using CUpointer_attribute = int;
using CUmemPool_attribute = int;
using CUmoduleLoadingMode = int;
using CUdriverProcAddressQueryResult = int;
using CUmemorytype = int;
using CUstreamCaptureStatus = int;
using CUstreamCaptureMode = int;
using CUgraphNodeType = int;
using CUgraphConditionalNodeType = int;
using CUmemAccess_flags = int;
using CUhostFn = void (*)(void*);
using CUoccupancyB2DSize = size_t (*)(int);

struct Context;
struct Module;
struct Link;
struct Kernel;
struct Stream;
struct Event;
struct Pool;
struct Graph;
struct GraphNode;
struct GraphExec;
struct UserObjectHandle;
using CUgraph = Graph*;
using CUgraphNode = GraphNode*;
using CUgraphExec = GraphExec*;
using CUuserObject = UserObjectHandle*;
using CUgraphConditionalHandle = cuuint64_t;
using CUcontext = Context*;
using CUmodule = Module*;
using CUlinkState = Link*;
using CUfunction = Kernel*;
using CUstream = Stream*;
using CUevent = Event*;
using CUmemoryPool = Pool*;
using CUarray = void*;
struct CUctxCreateParams;  // always null

#include "driver/abi_structs.h"

extern "C" {
#define WEFT_DRIVER(name, parameters) __attribute__((visibility("default"))) CUresult name parameters;
#include "driver/driver.def"
#undef WEFT_DRIVER

// Unlike any driver: the text of the last fault of a kernel of this process, "" if there was none; NUL-terminated. The
// pointer is valid until the calling thread calls this again.
__attribute__((visibility("default"))) const char* weftEmulatedLastFault();
// The program requested only this many bytes of the allocation at this address. The allocation is larger so that
// atomics of 8 and 16 bits can access whole words. Beyond `bytes`, plain accesses of fewer than four bytes are out of
// bounds.
__attribute__((visibility("default"))) void weftEmulatedAsked(CUdeviceptr address, size_t bytes);
// Whether a profiler would collect: between cuProfilerStart() and cuProfilerStop().
__attribute__((visibility("default"))) int weftEmulatedProfiles();
// The most blocks of a cluster of any launch; 0 if none had clusters.
__attribute__((visibility("default"))) unsigned weftEmulatedClusters();
}

}  // namespace weft::emulator
