// Arguments of the kernels that find the leaves and voxels of points (voxels.cpp), filled in by
// runtime/cuda/geometry/volumes.cpp.
#pragma once

#include "devlib/spatial/voxels.h"

namespace weft::devlib {

// Of all points: the first one without a voxel, the least and the greatest part of a corner along each axis, and the
// number of points that count.
struct VoxelExtents {
    UInt64 invalid, least[3], greatest[3], count;
};

struct VoxelPlan {
    const void* points;  // three numbers each, of the type in the kernel's name
    const Int32* mask;   // points where it is 0 do not count; null if all do
    Int64 count;
    nanovdb::ToIndex map;
    VoxelExtents* extents;
    UInt64* keys;  // of each point; all ones for those that do not count
    Int32* order;
    // The tile of a key: the place of its corner in `corners`, or, if that is null, the parts of the corner above the
    // least ones, in so many bits each.
    const UInt64* corners;
    Int64 corner_count;
    UInt64 least[3];
    Int32 bits[3];
    Int32 inner_bits;  // of the key below the tile: with or without the voxel in its leaf
};

// Runs of sorted keys that agree but for their lowest bits.
struct VoxelRunPlan {
    const UInt64* keys;
    Int64 count;
    Int32 shift;
    Int32* places;  // one at each begin of a run, else zero; then their running sums
    UInt64* heads;  // of each run, the key without its lowest bits
    UInt64* masks;  // of each run, the voxels in its leaf; null for none
};

}  // namespace weft::devlib
