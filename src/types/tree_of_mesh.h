// The id of the tree that a mesh has itself: that of the mesh with one more bit, so that what a mesh's id stands for,
// also on a tape, decides about its tree too.
#pragma once

#include <cstdint>

namespace weft {

// Set in the id of a mesh: its tree, as a BVH whose items are the faces.
inline constexpr std::uint64_t kTreeOfMesh = std::uint64_t{1} << 63;

}  // namespace weft
