// Ids of objects that a kernel finds: meshes, BVHs, hash grids and volumes. An id is an unsigned number of 64 bits
// whose highest byte is the kind of the object. It may lie among the numbers of the arguments, or in arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "types/effects.h"
#include "types/layout.h"
#include "types/type.h"

namespace weft::program {

// Whether ids may lie in a parameter of this type: unsigned numbers of 64 bits, at any depth.
bool may_hold_ids(Type type);

// The number of unsigned 64-bit numbers in a value of this type; those that its arrays lead to do not count.
std::int64_t id_count(Type type);

// Visits each of them that is an id; the id of a mesh's tree counts as that of the mesh.
void for_each_id(Type type, const std::byte* value, const std::function<void(std::uint64_t id)>& visit);

// Visits the ids among the numbers of a launch's arguments, of the parameters that may name objects. `effects` may have
// fewer entries than `types`: parameters that the compiler added hold no ids.
void for_each_argument_id(std::span<const Type> types, const ArgumentLayout& layout,
                          std::span<const ParameterEffects> effects, const std::byte* block,
                          const std::function<void(std::size_t parameter, std::uint64_t id)>& visit);

}  // namespace weft::program
