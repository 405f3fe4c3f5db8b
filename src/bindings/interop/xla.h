// The structures in which XLA calls functions of other libraries (its FFI, version 0.x), as far as Weft reads them.
// Declared here so that building Weft needs no JAX; tests/interop compares sizes and offsets with the header that JAX
// ships. Source: the C API of XLA's FFI.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::xla {

struct Extension {
    std::size_t struct_size;
    int type;
    Extension* next;
};
inline constexpr int kMetadataExtension = 1;

struct ApiVersion {
    std::size_t struct_size;
    Extension* extension;
    int major, minor;
};
inline constexpr int kMajor = 0, kMinor = 3;  // all minor versions up to this one agree about the parts used here
inline constexpr int kMinorOfOld = 1;

struct Metadata {
    std::size_t struct_size;
    ApiVersion api_version;
    std::uint32_t traits;
};
struct MetadataExtension {
    Extension base;
    Metadata* metadata;
};

struct Error;
struct ErrorArguments {
    std::size_t struct_size;
    Extension* extension;
    const char* message;
    int code;
};
inline constexpr int kInvalidArgument = 3, kInternal = 13;

// The first functions of the table; more follow.
struct Api {
    std::size_t struct_size;
    Extension* extension;
    ApiVersion version;
    const void* internal;
    Error* (*create_error)(ErrorArguments*);
};

struct Buffer {
    std::size_t struct_size;
    Extension* extension;
    int dtype;
    void* data;
    std::int64_t rank;
    std::int64_t* extents;
};

// Arguments and results: pointers to Buffer.
struct Buffers {
    std::size_t struct_size;
    Extension* extension;
    std::int64_t count;
    int* kinds;
    void** items;
};

struct Text {
    const char* data;
    std::size_t size;
};
struct Number {
    int dtype;
    void* value;
};
inline constexpr int kNumber = 3;  // the kind of a numeric attribute
struct Attributes {
    std::size_t struct_size;
    Extension* extension;
    std::int64_t count;
    int* kinds;
    Text** names;
    void** items;
};

struct CallFrame {
    std::size_t struct_size;
    Extension* extension;
    const Api* api;
    void* context;
    int stage;
    Buffers arguments;
    Buffers results;
    Attributes attributes;
};

using Handler = Error*(CallFrame*);
inline constexpr const char* kCapsule = "xla._CUSTOM_CALL_TARGET";

}  // namespace weft::xla
