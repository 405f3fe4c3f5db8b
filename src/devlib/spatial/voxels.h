// Voxels of points, as numbers whose order is that of a grid's nodes (nanovdb.h): for the host and for kernels of CUDA
// devices.
#pragma once

#include "devlib/spatial/layout.h"
#include "devlib/spatial/nanovdb.h"

namespace weft::devlib::nanovdb {

// From the world to index space: x -> inverse (x - translation), row by row.
struct ToIndex {
    double inverse[9];
    double translation[3];
};

// The voxel nearest to a place in the world (halves upwards). False if there is none: the place is not finite, or the
// voxel not in the range of int32.
template <typename T>
bool nearest_voxel(const ToIndex& map, const T* place, Int32 (&voxel)[3]) {
    for (int row = 0; row < 3; ++row) {
        double at = 0.5;
        for (int n = 0; n < 3; ++n) at += map.inverse[3 * row + n] * (double(place[n]) - map.translation[n]);
        at = __builtin_floor(at);
        if (!(at >= -2147483648.0 && at <= 2147483647.0)) return false;
        voxel[row] = Int32(at);
    }
    return true;
}
inline bool nearest_voxel(const ToIndex&, const Int32* given, Int32 (&voxel)[3]) {
    for (int axis = 0; axis < 3; ++axis) voxel[axis] = given[axis];
    return true;
}

inline constexpr int kLeafBits = 9, kLowerBits = 12, kUpperBits = 15;
inline constexpr int kNodeBits = kLowerBits + kUpperBits;  // of a leaf within its tile of the root

// A coordinate of a tile of the root, 20 bits, ascending.
inline constexpr int kCornerBits = 20;
constexpr UInt64 corner_part(Int32 x) { return UInt64((x >> 12) + (1 << 19)); }
constexpr Int32 from_corner_part(UInt64 part) { return Int32(UInt32(part - (1 << 19)) << 12); }

// The leaf of a voxel within its tile of the root.
constexpr UInt64 leaf_in_tile(Int32 i, Int32 j, Int32 k) {
    return UInt64(kUpper.entry(i, j, k)) << kLowerBits | kLower.entry(i, j, k);
}

}  // namespace weft::devlib::nanovdb
