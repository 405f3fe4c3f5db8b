// What is found through the id of a mesh besides the mesh itself, by ids with one more bit: what the mesh's id stands
// for, also on a tape, decides about these too.
#pragma once

#include <cstdint>

namespace weft {

// Set in the id of a mesh: its tree, as a BVH whose items are the faces.
inline constexpr std::uint64_t kTreeOfMesh = std::uint64_t{1} << 63;
// Its tangents: a mesh whose arrays hold the tangents of its own. A launch in forward mode may have them
// (transform/jvp); elsewhere, and where the mesh does not move, such an id finds a mesh without arrays.
inline constexpr std::uint64_t kTangentsOfMesh = std::uint64_t{1} << 62;

}  // namespace weft
