// Leaves and voxels of points on a CUDA device (runtime/cuda/geometry/volumes.cpp): keys, which are sorted, and runs of
// equal ones.
#include "devlib/cuda/voxels.h"

#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

using namespace nanovdb;

// False if the point does not count.
template <typename T>
bool find_voxel(const VoxelPlan& plan, Int64 point, Int32 (&voxel)[3]) {
    if (plan.mask != nullptr && plan.mask[point] == 0) return false;
    return nearest_voxel(plan.map, static_cast<const T*>(plan.points) + 3 * point, voxel);
}

template <typename T>
void find_extents(const VoxelPlan& plan) {
    VoxelExtents own{~UInt64(0), {~UInt64(0), ~UInt64(0), ~UInt64(0)}, {0, 0, 0}, 0};
    for (Int64 point = thread_index(); point < plan.count; point += threads()) {
        if (plan.mask != nullptr && plan.mask[point] == 0) continue;
        Int32 voxel[3];
        if (!find_voxel<T>(plan, point, voxel)) {
            own.invalid = UInt64(point) < own.invalid ? UInt64(point) : own.invalid;
            continue;
        }
        ++own.count;
        for (int axis = 0; axis < 3; ++axis) {
            const UInt64 part = corner_part(voxel[axis]);
            own.least[axis] = part < own.least[axis] ? part : own.least[axis];
            own.greatest[axis] = part > own.greatest[axis] ? part : own.greatest[axis];
        }
    }
    VoxelExtents& all = *plan.extents;
    if (own.invalid != ~UInt64(0))
        __scoped_atomic_fetch_min(&all.invalid, own.invalid, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    if (own.count == 0) return;
    __scoped_atomic_fetch_add(&all.count, own.count, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    for (int axis = 0; axis < 3; ++axis) {
        __scoped_atomic_fetch_min(&all.least[axis], own.least[axis], __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
        __scoped_atomic_fetch_max(&all.greatest[axis], own.greatest[axis], __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    }
}

UInt64 corner_of(const Int32 (&voxel)[3]) {
    return corner_part(voxel[0]) << (2 * kCornerBits) | corner_part(voxel[1]) << kCornerBits | corner_part(voxel[2]);
}

template <typename T>
void find_corners(const VoxelPlan& plan) {
    for (Int64 point = thread_index(); point < plan.count; point += threads()) {
        Int32 voxel[3];
        plan.order[point] = Int32(point);
        plan.keys[point] = find_voxel<T>(plan, point, voxel) ? corner_of(voxel) : ~UInt64(0);
    }
}

UInt64 tile_of(const VoxelPlan& plan, const Int32 (&voxel)[3]) {
    if (plan.corners == nullptr) {
        UInt64 tile = 0;
        for (int axis = 0; axis < 3; ++axis)
            tile = tile << plan.bits[axis] | (corner_part(voxel[axis]) - plan.least[axis]);
        return tile;
    }
    const UInt64 corner = corner_of(voxel);
    Int64 first = 0, last = plan.corner_count;
    while (first + 1 < last) {
        const Int64 middle = first + (last - first) / 2;
        if (plan.corners[middle] <= corner)
            first = middle;
        else
            last = middle;
    }
    return UInt64(first);
}

template <typename T>
void find_keys(const VoxelPlan& plan) {
    for (Int64 point = thread_index(); point < plan.count; point += threads()) {
        Int32 voxel[3];
        plan.order[point] = Int32(point);
        plan.keys[point] = ~UInt64(0);
        if (!find_voxel<T>(plan, point, voxel)) continue;
        UInt64 inside = leaf_in_tile(voxel[0], voxel[1], voxel[2]);
        if (plan.inner_bits > kNodeBits) inside = inside << kLeafBits | kLeaf.entry(voxel[0], voxel[1], voxel[2]);
        plan.keys[point] = tile_of(plan, voxel) << plan.inner_bits | inside;
    }
}

bool begins_run(const VoxelRunPlan& plan, Int64 i, int shift) {
    return i == 0 || plan.keys[i] >> shift != plan.keys[i - 1] >> shift;
}

void mark_runs(const VoxelRunPlan& plan) {
    for (Int64 i = thread_index(); i < plan.count; i += threads()) plan.places[i] = begins_run(plan, i, plan.shift);
}

void write_runs(const VoxelRunPlan& plan) {
    for (Int64 i = thread_index(); i < plan.count; i += threads()) {
        const UInt64 key = plan.keys[i];
        const Int64 run = plan.places[i] - 1;
        if (begins_run(plan, i, plan.shift)) plan.heads[run] = key >> plan.shift;
        if (plan.masks == nullptr || !begins_run(plan, i, 0)) continue;
        const auto voxel = UInt32(key & (kLeafVoxels - 1));
        __scoped_atomic_fetch_or(plan.masks + 8 * run + voxel / 64, UInt64(1) << (voxel % 64), __ATOMIC_RELAXED,
                                 __MEMORY_SCOPE_DEVICE);
    }
}

}  // namespace

extern "C" {

#define WEFT_FOR_POINTS(type, name)                                                                        \
    [[clang::device_kernel]] void weft_voxels_extents_##name(VoxelPlan plan) { find_extents<type>(plan); } \
    [[clang::device_kernel]] void weft_voxels_corners_##name(VoxelPlan plan) { find_corners<type>(plan); } \
    [[clang::device_kernel]] void weft_voxels_keys_##name(VoxelPlan plan) { find_keys<type>(plan); }
WEFT_FOR_POINTS(Int32, i32)
WEFT_FOR_POINTS(float, f32)
WEFT_FOR_POINTS(double, f64)
#undef WEFT_FOR_POINTS

[[clang::device_kernel]] void weft_voxels_mark(VoxelRunPlan plan) { mark_runs(plan); }
[[clang::device_kernel]] void weft_voxels_write(VoxelRunPlan plan) { write_runs(plan); }

}  // extern "C"

}  // namespace weft::devlib
