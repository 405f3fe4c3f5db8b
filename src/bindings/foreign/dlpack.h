// DLPack's structures and its C exchange API, as far as Weft uses them: DLPack 1.3, by which two libraries share one
// piece of memory. Declared here so that building Weft needs no other package; tests/interop compares the sizes and
// offsets with a framework's own header. Source: "Python Specification for DLPack" and the C API of DLPack.
#pragma once

#include <cstdint>

namespace weft::dlpack {

enum class DeviceType : std::int32_t {
    cpu = 1,
    cuda = 2,
    cuda_host = 3,  // pinned: the host reads and writes it too
    opencl = 4,
    vulkan = 7,
    metal = 8,
    vpi = 9,
    rocm = 10,
    rocm_host = 11,
    cuda_managed = 13,  // the host reads and writes it too
    one_api = 14,
    web_gpu = 15,
    hexagon = 16,
    maia = 17,
    trainium = 18,
};

struct Device {
    DeviceType type;
    std::int32_t ordinal;
};

enum class TypeCode : std::uint8_t {
    signed_int = 0,
    unsigned_int = 1,
    floating = 2,
    opaque = 3,
    bfloat = 4,
    complex = 5,
    boolean = 6,
    float8_e4m3fn = 10,
    float8_e5m2 = 12,
};

struct DataType {
    TypeCode code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct Tensor {
    void* data;
    Device device;
    std::int32_t ndim;
    DataType dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements; null for C order without gaps (before version 1.2)
    std::uint64_t byte_offset;
};

// The form without a version, in capsules named "dltensor".
struct ManagedTensor {
    Tensor tensor;
    void* context;
    void (*deleter)(ManagedTensor* self);
};

struct Version {
    std::uint32_t major, minor;
};
inline constexpr Version kVersion = {1, 3};

inline constexpr std::uint64_t kReadOnly = 1, kIsCopied = 2;

// In capsules named "dltensor_versioned".
struct VersionedTensor {
    Version version;
    void* context;
    void (*deleter)(VersionedTensor* self);
    std::uint64_t flags;
    Tensor tensor;
};

inline constexpr const char* kCapsule = "dltensor";
inline constexpr const char* kUsedCapsule = "used_dltensor";
inline constexpr const char* kVersionedCapsule = "dltensor_versioned";
inline constexpr const char* kUsedVersionedCapsule = "used_dltensor_versioned";

// The contents of the capsule `__dlpack_c_exchange_api__` of a class: functions that need no Python call and no
// allocation. Objects are PyObject*. All return 0, or -1 with Python's error set; the GIL is held.
struct ExchangeApi {
    struct Header {
        Version version;
        Header* previous;  // of an older major version, or null
    };
    Header header;
    int (*allocate)(Tensor* prototype, VersionedTensor** out, void* error_context,
                    void (*set_error)(void* error_context, const char* kind, const char* message));
    int (*from_object)(void* object, VersionedTensor** out);  // keeps the memory alive
    int (*to_object)(VersionedTensor* tensor, void** out);    // takes the tensor over
    int (*view_of_object)(void* object, Tensor* out);         // may be null; valid as long as the object
    int (*current_stream)(DeviceType device, std::int32_t ordinal, void** out);
};
inline constexpr const char* kExchangeCapsule = "dlpack_exchange_api";
inline constexpr const char* kExchangeAttribute = "__dlpack_c_exchange_api__";

}  // namespace weft::dlpack
