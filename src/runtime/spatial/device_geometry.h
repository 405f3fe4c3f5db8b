// Geometry on a device whose memory the host cannot reach: its table of ids, and its kernels for trees and hash grids.
// All work is in the order of the current stream.
#pragma once

#include <cstdint>
#include <span>

#include "devlib/cuda/geometry.h"
#include "devlib/spatial/hash_grid.h"
#include "devlib/spatial/voxels.h"
#include "runtime/handles.h"
#include "types/type.h"

namespace weft::runtime::nanovdb {
struct Topology;
}

namespace weft::runtime::spatial {

// Points of a volume, by addresses of the device: three numbers each.
struct DevicePoints {
    const void* data;
    Scalar scalar;             // int32: voxels; else places in the world
    const std::int32_t* mask;  // points where it is 0 do not count; null if all do
    std::int64_t count;        // at most 2^31 - 1
    devlib::nanovdb::ToIndex map;
};

// One hash grid of points, by addresses of the device.
struct GridBuild {
    const void* points = nullptr;
    std::int64_t point_stride = 0;  // in bytes, as for groups
    Scalar scalar = Scalar::f32;    // of the points
    const void* groups = nullptr;   // int32, which offset the cells and are copied in the points' order; null: none
    std::int64_t group_stride = 0;
    devlib::HashGridFields description;  // all fields are set: the memory for the sorted points, and how many there are
    devlib::HashGridFields* described = nullptr;  // becomes `description`
    devlib::HashGridFields* emptied = nullptr;    // becomes the descriptor of an empty grid; null for none
    void* workspace = nullptr;                    // of DeviceGeometry::grid_workspace() bytes
};

class DeviceGeometry {
public:
    virtual DeviceTable& table() = 0;
    // Writes bytes of the host's, which may be freed when it returns, to the device's memory.
    virtual void write(void* to, const void* from, std::int64_t size_bytes) = 0;
    // Refits a tree of so many blocks. `level_ends`: where each level ends in RefitPlan::by_level. Other fields of the
    // plan than `begin` and `count` are set.
    virtual void refit(const devlib::RefitPlan& plan, Scalar scalar, std::int64_t blocks,
                       std::span<const std::int64_t> level_ends) = 0;
    virtual std::int64_t grid_workspace(std::int64_t points, std::int64_t cells) const = 0;
    virtual void build_grid(const GridBuild& build) = 0;

    // Sorts the items of a packed tree and fills its leaves. The fields of the plan up to `items`, and from `leaf_ends`
    // on, are set.
    virtual void build(devlib::BuildPlan plan, Scalar scalar) = 0;
    // The position of the first index that names none of so many points; `count` if there is none. Waits.
    virtual std::int64_t first_wrong(const std::int32_t* indices, std::int64_t count, std::int64_t points) = 0;
    // The tiles of the root and the leaves that contain these points, and with `by_voxels` their voxels in the leaves.
    // Returns the first point that has no voxel; -1 if all have one. Waits, and takes memory: 24 bytes a point.
    virtual std::int64_t find_leaves(const DevicePoints& points, bool by_voxels, nanovdb::Topology& topology) = 0;

protected:
    ~DeviceGeometry() = default;
};

}  // namespace weft::runtime::spatial
