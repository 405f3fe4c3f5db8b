// Whether points are inside of meshes: by winding numbers, and by how often rays cross the mesh.
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

// The i-th number of a sequence that fills -1 .. 1 evenly: multiples of an irrational number, without their whole part.
template <typename T>
T spread_number(Int32 i, double step) {
    const double place = step * i;
    return T(2 * (place - double(Int64(place))) - 1);
}

// 1 outside, -1 inside: what most of `samples` rays say. They go in one direction, and from the second ray on in others
// around it, up to `scale` away along each axis.
template <typename T>
void parity(Int32* result, const UInt64* mesh, const T* point, const Int32* samples, const T* scale, UInt64 mask,
            Int32 width) {
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[lane]);
        const Int32 count = samples[lane] > 1 ? samples[lane] : 1;
        Int32 inside = 0;
        for (Int32 i = 0; i < count && tree.node_count > 0; ++i) {
            // Not along an axis, where many meshes have their edges.
            Vec<T> direction{T(0.36), T(0.48), T(0.8)};
            if (i > 0) {
                direction[0] += scale[lane] * spread_number<T>(i, 0.8191725134);
                direction[1] += scale[lane] * spread_number<T>(i, 0.6710436067);
                direction[2] += scale[lane] * spread_number<T>(i, 0.5497004779);
            }
            Ray<T> ray(tree, lane3(point, width, lane), direction);
            CountTriangles<T> visitor{tree.triangles, ray, kInfinity<T>};
            if (ray.is_valid) traverse<false>(tree, ray, 0, visitor);
            inside += visitor.count & 1;
        }
        result[lane] = 2 * Int64(inside) > count ? -1 : 1;
    });
}

}  // namespace

#define WEFT_DEFINE(T, type)                                                                                      \
    WEFT_LIBRARY(weft_lib_mesh_winding_##type)(T * result, const UInt64* mesh, const T* point, const T* accuracy, \
                                               UInt64 mask, Int32 width) {                                        \
        winding<T>(result, mesh, point, accuracy, mask, width);                                                   \
    }                                                                                                             \
    WEFT_LIBRARY(weft_lib_mesh_parity_##type)(Int32 * result, const UInt64* mesh, const T* point,                 \
                                              const Int32* samples, const T* scale, UInt64 mask, Int32 width) {   \
        parity<T>(result, mesh, point, samples, scale, mask, width);                                              \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE

}  // namespace weft::devlib
