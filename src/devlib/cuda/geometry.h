// Arguments of the kernels that make and refit trees on a CUDA device, filled in by runtime/spatial and
// runtime/cuda/geometry. Pointers to numbers and nodes are of the type in the kernel's name.
#pragma once

#include "devlib/spatial/layout.h"

namespace weft::devlib {

// ---- refits (refit.cpp) ----

// The blocks of a tree, then its nodes level by level from the lowest one up.
struct RefitPlan {
    void* nodes;
    void* blocks;
    void* moments;          // null if there are none
    const Int32* corners;   // the points of each block's triangles, by corner and lane; null for boxes
    const void* first;      // points; lower corners of boxes
    const void* second;     // upper corners of boxes
    const Int32* places;    // of each block: its node times kWidth, plus its slot
    const Int32* by_level;  // numbers of the nodes in the order of their levels
    Int64 begin, count;     // of this launch: blocks, or a part of `by_level`
    void* described[2];     // Tree descriptors, whose boxes are set; may be null
};

// ---- packed trees (build.cpp) ----

// The order of the items along a curve, and the leaves in that order.
struct BuildPlan {
    const void* first;     // points; lower corners of boxes
    const void* second;    // upper corners of boxes
    const Int32* indices;  // three points of each triangle; null for boxes
    const Int32* groups;   // of each item; null if there are none
    Int64 items;
    UInt64* extents;         // 6: the least and the greatest centre, as ordered_bits()
    UInt64* codes;           // of each item
    Int32* order;            // the items; sorted after the codes
    Int32* sorted_groups;    // of the items in that order
    const Int32* leaf_ends;  // of each block: the end of its items in the order
    void* blocks;            // TriangleBlock or BoxBlock
    Int32* corners;          // as RefitPlan has them; null for boxes
    Int64 block_count;
    const Int32*
        runs;  // begin and end of each run of items in the order that the device halves; null if there are none
    Int64 run_count;
};

// The items of a run at most, and the threads of a block, which takes a run.
inline constexpr int kRunItems = 4096, kRunThreads = 512;

// The first number that is not below `points`.
struct CheckPlan {
    const Int32* indices;
    Int64 count, points;
    Int64* first_wrong;  // `count` at first
};

}  // namespace weft::devlib
