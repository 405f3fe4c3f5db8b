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

inline constexpr int kInitialize = 2;  // the stage before a program runs

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
inline constexpr std::uint32_t kCommandBufferCompatible = 1;  // a trait: the work may be captured and replayed

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
struct ErrorText {
    std::size_t struct_size;
    Extension* extension;
    Error* error;
    const char* message;
};
struct ErrorEnd {
    std::size_t struct_size;
    Extension* extension;
    Error* error;
};
struct StreamArguments {
    std::size_t struct_size;
    Extension* extension;
    void* context;
    void* stream;
};
struct OrdinalArguments {
    std::size_t struct_size;
    Extension* extension;
    void* context;
    std::int32_t ordinal;
};

// The first functions of the table; more may follow, and older tables end earlier.
struct Api {
    std::size_t struct_size;
    Extension* extension;
    ApiVersion version;
    const void* internal;
    Error* (*create_error)(ErrorArguments*);
    void (*message_of_error)(ErrorText*);
    void (*destroy_error)(ErrorEnd*);
    const void* register_handler;
    Error* (*get_stream)(StreamArguments*);
    const void* unused[12];
    Error* (*get_ordinal)(OrdinalArguments*);
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
