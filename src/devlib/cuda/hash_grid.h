// Arguments of the kernels that build hash grids on a CUDA device (hash_grid.cpp), filled in by
// runtime/cuda/geometry/grids.cpp.
//
// The numbers of the points are sorted by their cells (radix_sort.h), so that points of a cell keep the order of their
// numbers. The first kernel computes the cells and counts the digits of all passes.
#pragma once

#include <cstdint>

#include "devlib/cuda/radix_sort.h"
#include "devlib/spatial/hash_grid.h"

namespace weft::devlib {

inline constexpr int kGridMostPasses = 32 / kDigitBits;  // cells are below 2^31
inline constexpr int kGridCells = 2048;                  // whose beginnings a block finds

struct GridCellsPlan {
    const char* points;
    std::int64_t point_stride;  // in bytes, as for groups
    const char* groups;         // int32; null if cells have no offsets
    std::int64_t group_stride;
    double inverse_width;
    std::int64_t dims[3];
    UInt32* cells;   // of each point
    UInt32* digits;  // how many points have each digit, by pass: kDigits a pass; zeros before
    std::int64_t count;
    std::int32_t passes;
};

struct GridEndPlan {
    const UInt32* cells;   // sorted
    const Int32* numbers;  // in that order
    const char* groups;    // null if there are none
    std::int64_t group_stride;
    Int32* sorted_groups;
    Int32* starts;
    std::int64_t count, cell_count;
    HashGridFields description;
    HashGridFields* described;
    HashGridFields* emptied;  // null for none
};

}  // namespace weft::devlib
