// Points at which a volume gets tiles or voxels.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/array.h"
#include "runtime/spatial/volume/build.h"

namespace weft::runtime::nanovdb {

struct FoundTopology {
    Topology topology;          // empty if a point is invalid
    std::uint64_t given = 0;    // number of given points, masked ones included
    std::int64_t invalid = -1;  // the first point without a voxel: not finite, or outside of int32
};

// The leaves that contain these points, or their voxels, found on the device of the points if it has geometry of its
// own, else on the host. Points are a contiguous array. (n,) of vec3i or (n, 3) of int32: voxels. (n,) of vec3f or
// vec3d or (n, 3) of float32 or float64: places in the world, each of which means the nearest voxel (halves upwards).
// `mask`, (n,) of int32, removes points where it is 0. Throws UsageError in the name of `api` for other arrays, and for
// more than 2^31 - 1 points; `name` denotes the points.
FoundTopology find_topology(const Array& points, const Array* mask, const Map& map, bool by_voxels,
                            std::string_view api, std::string_view name);

}  // namespace weft::runtime::nanovdb
