// Cells of hash grids, computed alike on the host and on devices, and the descriptor that kernels read.
#pragma once

#include "devlib/spatial/layout.h"

namespace weft::devlib {

// Cell numbers are clamped to this, and a group's cells are offset by its number times these: as in
// builtins/hash_grid.cpp.
inline constexpr double kFarthestCell = 0x1p50;
inline constexpr UInt32 kGroupSteps[3] = {73856093, 19349663, 83492791};

// The cell of a coordinate along one axis, wrapped around the grid. `per_dim` is 1 / dim: the product with it differs
// by less than 1 from the quotient, so `rest` is off by one dim at most. All are integers below 2^53, so that a fused
// product gives the same.
inline double cell_along(double place, double offset, double inverse_width, double dim, double per_dim) {
    double at = __builtin_floor(place * inverse_width);
    at = at > -kFarthestCell ? at : -kFarthestCell;  // also replaces NaNs
    at = (at < kFarthestCell ? at : kFarthestCell) + offset;
    double rest = at - __builtin_floor(at * per_dim) * dim;
    rest = rest < 0.0 ? rest + dim : rest;
    return rest >= dim ? rest - dim : rest;
}

// The offset of the cells of a group along one axis.
inline double group_offset(UInt32 group, int axis) { return static_cast<Int32>(group * kGroupSteps[axis]); }

// The fields of types/objects.cpp.
struct HashGridFields {
    ArrayFields starts;  // int32: the first index in `points` of each cell, and the end of the last cell
    ArrayFields points;  // int32: the numbers of the points, sorted by cell
    ArrayFields groups;  // int32, of the points in that order; null if there are none
    double inverse_width = 0.0;
    UInt64 grouped = 0;  // address of the other grid
    Int32 dims[3] = {0, 0, 0};
    Int32 count = 0;
};

}  // namespace weft::devlib
