// Ids of objects that a kernel finds: meshes, BVHs, hash grids and volumes. An id is an unsigned number of 64 bits
// whose highest byte is the kind of the object. It may lie among the numbers of the arguments, or in arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "types/type.h"

namespace weft::program {

// Whether ids may lie in a parameter of this type: unsigned numbers of 64 bits, at any depth.
bool may_hold_ids(Type type);

// Appends the offsets of the unsigned 64-bit numbers in a value of this type that starts at `offset`.
void add_id_offsets(Type type, std::int64_t offset, std::vector<std::int64_t>& offsets);

// Appends those of the numbers at these offsets that are ids; the id of a mesh's tree counts as that of the mesh.
void read_ids(const std::byte* from, std::span<const std::int64_t> offsets, std::vector<std::uint64_t>& ids);

}  // namespace weft::program
