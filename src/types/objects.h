// Objects that kernels reach by a number (uint64): BVHs, meshes, hash grids, volumes, textures.
//
// Each has a descriptor, a struct in memory of the device. Kernels see its first fields; the others are for functions
// of the device library. A descriptor of zeros describes an empty object: a number that names no object finds such a
// one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "types/type.h"

namespace weft {

enum class ObjectKind : std::uint8_t { bvh = 1, mesh, hash_grid, volume, texture };
inline constexpr int kObjectKinds = 5;
const char* object_name(ObjectKind kind);  // "hash grid"

// No descriptor is larger.
inline constexpr std::int64_t kMostDescriptorBytes = 4096;
Type descriptor_type(ObjectKind kind, Scalar scalar = Scalar::f32);

// A struct that builtin functions take and return, by its name; none if there is no such struct.
struct KnownStruct {
    const char* name;  // "HashGridQuery"
    const char* doc;   // null: not a class of the module
    Type (*type)();
    const char* next;  // the function that a for loop over such a value calls: "hash_grid_query_next"; or null
};
std::span<const KnownStruct> known_structs();
const KnownStruct* find_known_struct(std::string_view name);
const KnownStruct* find_known_struct(Type type);

// A texture in kernels is a struct of this type: its id and its extents, width first. All zeros: no texture.
inline constexpr int kMostTextureDims = 3;
Type texture_type(int dims);
// 1, 2 or 3; 0 for other types.
int texture_dims(Type type);

}  // namespace weft
