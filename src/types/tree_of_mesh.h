// Ids that find the tree or the tangents of a mesh: the mesh's id with one more bit. They have the meaning, also on a
// tape, that the mesh's id has.
#pragma once

#include <cstdint>

namespace weft {

// Set in the id of a mesh: finds its tree, a BVH whose items are the faces.
inline constexpr std::uint64_t kTreeOfMesh = std::uint64_t{1} << 63;
// Finds its tangents: a mesh whose arrays hold the tangents of its own. A launch in forward mode may have them
// (transform/jvp). In other launches, and if the mesh does not move, such an id finds a mesh without arrays.
inline constexpr std::uint64_t kTangentsOfMesh = std::uint64_t{1} << 62;

}  // namespace weft
