#include "runtime/spatial/volume/points.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/array_copies.h"
#include "runtime/bytes.h"
#include "runtime/spatial/device_geometry.h"
#include "runtime/spatial/parallel.h"
#include "support/error.h"

namespace weft::runtime::nanovdb {

namespace {

struct Points {
    std::vector<Coordinate> voxels;
    std::int64_t invalid = -1;  // the first point without a voxel
};

constexpr std::int64_t kPointsGrain = 1 << 14;

// The scalar type of an array with three numbers for each point. Throws for other arrays.
Scalar checked_scalar(const Array& points, std::string_view api, std::string_view name) {
    const Type type = points.dtype;
    const bool are_vectors = points.ndim == 1 && type.is_vector() && type.rows() == 3;
    const bool are_rows = points.ndim == 2 && type.is_scalar() && points.view.shape[1] == 3;
    const Scalar scalar = type.is_scalar() || type.is_vector() ? type.scalar() : Scalar::boolean;
    const bool is_known = scalar == Scalar::i32 || scalar == Scalar::f32 || scalar == Scalar::f64;
    if ((!are_vectors && !are_rows) || !is_known || !points.is_contiguous())
        throw UsageError(
            api, std::string(name) + " is an array of " + type.python_name() + " with shape " +
                     shape_text(points.shape()) + (points.is_contiguous() ? "" : " that is not contiguous") +
                     "; expected a contiguous array, (n,) of vec3i, vec3f or vec3d, or (n, 3) of int32, float32 or "
                     "float64");
    return scalar;
}

ToIndex to_index(const Map& map) {
    ToIndex made;
    std::ranges::copy(map.inverse, made.inverse);
    std::ranges::copy(map.translation, made.translation);
    return made;
}

template <typename T>
void read(const Array& points, const std::int32_t* mask, const Map& map, Points& result) {
    const auto* const from = reinterpret_cast<const T*>(host_data(points));
    const std::int64_t count = points.view.shape[0];
    const ToIndex to = to_index(map);
    result.voxels.resize(static_cast<std::size_t>(count));
    std::atomic<std::int64_t> invalid{count};
    for_ranges(count, kPointsGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t n = begin; n < end; ++n) {
            if (mask && mask[n] == 0) continue;
            std::int32_t voxel[3];
            if (nearest_voxel(to, from + 3 * n, voxel)) {
                result.voxels[static_cast<std::size_t>(n)] = {voxel[0], voxel[1], voxel[2]};
                continue;
            }
            std::int64_t first = invalid;
            while (n < first && !invalid.compare_exchange_weak(first, n)) {
            }
            break;
        }
    });
    if (invalid < count) result.invalid = invalid;
    if (!mask) return;
    std::size_t kept = 0;
    for (std::size_t n = 0; n < result.voxels.size(); ++n)
        if (mask[n] != 0) result.voxels[kept++] = result.voxels[n];
    result.voxels.resize(kept);
}

// Reads a contiguous array on the host.
Points read_points(const Array& points, Scalar scalar, const Array* mask, const Map& map) {
    const Array from = on_host(points);
    Array mask_on_host;
    const std::int32_t* chosen = nullptr;
    if (mask) {
        mask_on_host = contiguous(on_host(*mask));
        chosen = reinterpret_cast<const std::int32_t*>(host_data(mask_on_host));
    }
    Points result;
    if (scalar == Scalar::i32) read<std::int32_t>(from, chosen, map, result);
    if (scalar == Scalar::f32) read<float>(from, chosen, map, result);
    if (scalar == Scalar::f64) read<double>(from, chosen, map, result);
    return result;
}

}  // namespace

FoundTopology find_topology(const Array& points, const Array* mask, const Map& map, bool by_voxels,
                            std::string_view api, std::string_view name) {
    const Scalar scalar = checked_scalar(points, api, name);
    const std::int64_t count = points.view.shape[0];
    if (mask && (mask->dtype != i32_type() || mask->ndim != 1 || mask->view.shape[0] != count))
        throw UsageError(api, "point_mask is an array of " + mask->dtype.python_name() + " with shape " +
                                  shape_text(mask->shape()) + "; expected int32, one number for each of the " +
                                  std::to_string(count) + " points");
    if (count > INT32_MAX)
        throw UsageError(
            api, "a volume is made of at most " + std::to_string(INT32_MAX) + " points, not " + std::to_string(count),
            ErrorCategory::value);
    FoundTopology result;
    result.given = static_cast<std::uint64_t>(count);
    if (spatial::DeviceGeometry* const geometry = points.device->geometry()) {
        const Array chosen =
            mask ? contiguous(mask->device == points.device ? *mask : clone(*mask, *points.device)) : Array();
        const spatial::DevicePoints there{points.view.data, scalar,
                                          mask ? static_cast<const std::int32_t*>(chosen.view.data) : nullptr, count,
                                          to_index(map)};
        result.invalid = geometry->find_leaves(there, by_voxels, result.topology);
        count_nodes(result.topology);
        return result;
    }
    const Points read = read_points(points, scalar, mask, map);
    result.invalid = read.invalid;
    if (read.invalid < 0) result.topology = by_voxels ? voxels_of(read.voxels) : tiles_of(read.voxels);
    return result;
}

}  // namespace weft::runtime::nanovdb
