// Arguments of the kernels that build hash grids on a CUDA device (hash_grid.cpp), filled in by
// runtime/cuda/geometry/grids.cpp.
//
// The numbers of the points are sorted by their cells, digit by digit from the lowest, so that equal cells keep the
// order of the numbers. The first kernel computes the cells and counts the digits of all passes. Then each pass is one
// kernel: a block sorts a tile of points in shared memory, and learns the place of its points of each digit from the
// blocks before it (Adinets and Merrill, "Onesweep", 2022).
#pragma once

#include <cstdint>

#include "devlib/spatial/hash_grid.h"

namespace weft::devlib {

inline constexpr int kGridThreads = 256;  // per block
inline constexpr int kGridItems = 8;      // points of a thread
inline constexpr int kGridTile = kGridThreads * kGridItems;
inline constexpr int kGridMostBits = 8;                     // of a digit
inline constexpr int kGridDigits = 1 << kGridMostBits;      // at most as many as threads
inline constexpr int kGridMostPasses = 32 / kGridMostBits;  // cells are below 2^31
inline constexpr int kGridCells = 2048;                     // whose beginnings a block finds

struct GridCellsPlan {
    const char* points;
    std::int64_t point_stride;  // in bytes, as for groups
    const char* groups;         // int32; null if cells have no offsets
    std::int64_t group_stride;
    double inverse_width;
    std::int64_t dims[3];
    UInt32* cells;   // of each point
    UInt32* digits;  // how many points have each digit, by pass: kGridDigits a pass; zeros before
    std::int64_t count;
    std::int32_t passes, bits;
};

struct GridSortPlan {
    const UInt32* cells;
    const Int32* numbers;  // null: the points are in the order of their numbers
    UInt32* sorted_cells;
    Int32* sorted_numbers;
    const UInt32* digits;  // of this pass
    UInt32* next_tile;     // 0 before, as all of `progress`
    // For each tile and digit. 0: not known yet. With the highest bit: the digit's place in the next tile.
    // Else: 1 more than the number of points in the tile.
    UInt32* progress;
    std::int64_t count;
    std::int32_t shift, bits;
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
