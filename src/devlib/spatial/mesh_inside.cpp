// Tests of points for being inside of meshes, by winding numbers, and by the parity of crossings of rays. 1 outside, -1
// inside.
#include "devlib/spatial/functions.h"
#include "devlib/spatial/ray.h"
#include "devlib/spatial/winding.h"

namespace weft::devlib {

namespace {

template <typename T>
void winding(T* result, const UInt64* mesh, const T* point, const T* accuracy, UInt64 mask, Int32 width) {
    for_each_lane(mask, [&](int lane) {
        result[lane] =
            winding_number(tree_of<T, MeshDescriptor>(mesh[lane]), lane3(point, width, lane), accuracy[lane]);
    });
}

// Whether a ray crosses the mesh an odd number of times.
template <typename T>
bool leaves(const Tree<T>& tree, const Vec<T>& start, const Vec<T>& direction) {
    Ray<T> ray(tree, start, direction);
    CountTriangles<T> visitor{tree.triangles, ray, kInfinity<T>};
    if (tree.node_count > 0 && ray.is_valid) traverse<false>(tree, ray, 0, visitor);
    return (visitor.count & 1) != 0;
}

// By the rays along x, y and z: inside if at least two of them leave the mesh.
template <typename T>
void side_by_axes(Int32* result, const UInt64* mesh, const T* point, UInt64 mask, Int32 width) {
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[lane]);
        const Vec<T> start = lane3(point, width, lane);
        const bool first = leaves(tree, start, {1, 0, 0}), second = leaves(tree, start, {0, 1, 0});
        result[lane] = (first == second ? first : leaves(tree, start, {0, 0, 1})) ? -1 : 1;
    });
}

// The i-th number of a sequence that fills -1 .. 1 evenly: multiples of an irrational number, modulo the interval.
template <typename T>
T spread_number(Int32 i, double first, double step) {
    const double place = 0.5 * (first + 1) + step * i;
    return T(2 * (place - double(Int64(place))) - 1);
}

// By `samples` rays around the diagonal (1, 1, 1), rotated by up to `scale` along each axis: inside if at least half of
// them leave the mesh. So everything is inside without samples. The first ray is about that of release 1.19.
template <typename T>
void parity(Int32* result, const UInt64* mesh, const T* point, const Int32* samples, const T* scale, UInt64 mask,
            Int32 width) {
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[lane]);
        const Int32 count = samples[lane] > 0 ? samples[lane] : 0;
        Int32 inside = 0;
        for (Int32 i = 0; i < count && tree.node_count > 0; ++i) {
            const Vec<T> turn{spread_number<T>(i, 0.32, 0.8191725134), spread_number<T>(i, 0.9, 0.6710436067),
                              spread_number<T>(i, 0.375, 0.5497004779)};
            inside += leaves(tree, lane3(point, width, lane), Vec<T>{1, 1, 1} + scale[lane] * turn);
        }
        result[lane] = 2 * Int64(inside) >= count ? -1 : 1;
    });
}

}  // namespace

#define WEFT_DEFINE(T, type)                                                                                      \
    WEFT_LIBRARY(weft_lib_mesh_winding_##type)(T * result, const UInt64* mesh, const T* point, const T* accuracy, \
                                               UInt64 mask, Int32 width) {                                        \
        winding<T>(result, mesh, point, accuracy, mask, width);                                                   \
    }                                                                                                             \
    WEFT_LIBRARY(weft_lib_mesh_axes_##type)(Int32 * result, const UInt64* mesh, const T* point, UInt64 mask,      \
                                            Int32 width) {                                                        \
        side_by_axes<T>(result, mesh, point, mask, width);                                                        \
    }                                                                                                             \
    WEFT_LIBRARY(weft_lib_mesh_parity_##type)(Int32 * result, const UInt64* mesh, const T* point,                 \
                                              const Int32* samples, const T* scale, UInt64 mask, Int32 width) {   \
        parity<T>(result, mesh, point, samples, scale, mask, width);                                              \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE

}  // namespace weft::devlib
