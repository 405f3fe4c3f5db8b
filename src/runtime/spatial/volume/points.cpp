#include "runtime/spatial/volume/points.h"

#include <atomic>
#include <cmath>

#include "runtime/bytes.h"
#include "runtime/spatial/parallel.h"
#include "support/error.h"

namespace weft::runtime::nanovdb {

namespace {

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

// The voxel nearest to a place in the world. False if there is none.
template <typename T>
bool nearest(const Map& map, const T* place, Coordinate& voxel) {
    std::int32_t* const to[] = {&voxel.i, &voxel.j, &voxel.k};
    for (int row = 0; row < 3; ++row) {
        double at = 0.5;
        for (int n = 0; n < 3; ++n)
            at += map.inverse[3 * row + n] * (static_cast<double>(place[n]) - map.translation[n]);
        at = std::floor(at);
        if (!(at >= INT32_MIN && at <= INT32_MAX)) return false;
        *to[row] = static_cast<std::int32_t>(at);
    }
    return true;
}
bool nearest(const Map&, const std::int32_t* given, Coordinate& voxel) {
    voxel = {given[0], given[1], given[2]};
    return true;
}

template <typename T>
void read(const Array& points, const std::int32_t* mask, const Map& map, Points& result) {
    const auto* const from = reinterpret_cast<const T*>(host_data(points));
    const std::int64_t count = points.view.shape[0];
    result.voxels.resize(static_cast<std::size_t>(count));
    std::atomic<std::int64_t> invalid{count};
    for_ranges(count, kPointsGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t n = begin; n < end; ++n) {
            if (mask && mask[n] == 0) continue;
            if (nearest(map, from + 3 * n, result.voxels[static_cast<std::size_t>(n)])) continue;
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

}  // namespace

Points read_points(const Array& points, const Array* mask, const Map& map, std::string_view api,
                   std::string_view name) {
    const Scalar scalar = checked_scalar(points, api, name);
    const Array from = on_host(points);
    Array mask_on_host;
    const std::int32_t* chosen = nullptr;
    if (mask) {
        if (mask->dtype != i32_type() || mask->ndim != 1 || mask->view.shape[0] != points.view.shape[0])
            throw UsageError(api, "point_mask is an array of " + mask->dtype.python_name() + " with shape " +
                                      shape_text(mask->shape()) + "; expected int32, one number for each of the " +
                                      std::to_string(points.view.shape[0]) + " points");
        mask_on_host = contiguous(on_host(*mask));
        chosen = reinterpret_cast<const std::int32_t*>(host_data(mask_on_host));
    }
    Points result;
    result.given = static_cast<std::uint64_t>(points.view.shape[0]);
    if (scalar == Scalar::i32) read<std::int32_t>(from, chosen, map, result);
    if (scalar == Scalar::f32) read<float>(from, chosen, map, result);
    if (scalar == Scalar::f64) read<double>(from, chosen, map, result);
    return result;
}

}  // namespace weft::runtime::nanovdb
