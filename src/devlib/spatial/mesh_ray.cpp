// Rays and meshes: the nearest face, any face, the number of faces.
#include "devlib/spatial/functions.h"
#include "devlib/spatial/ray.h"

namespace weft::devlib {

namespace {

template <bool kOrdered, template <typename> typename Visitor, typename T>
Visitor<T> visit(const Tree<T>& tree, const Ray<T>& ray, T limit, Int32 root) {
    Visitor<T> visitor{tree.triangles, ray, limit * ray.scale};
    if (ray.is_valid && find_root(tree, root)) traverse<kOrdered>(tree, ray, root, visitor);
    return visitor;
}

template <typename T>
void nearest(Int32* result, const UInt64* mesh, const T* start, const T* direction, const T* limit, const Int32* root,
             UInt64 mask, Int32 width) {
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[lane]);
        const Ray<T> ray(tree, lane3(start, width, lane), lane3(direction, width, lane));
        result[lane] = visit<true, NearestTriangle>(tree, ray, limit[lane], root[lane]).face;
    });
}

template <typename T>
void any(Int32* result, const UInt64* mesh, const T* start, const T* direction, const T* limit, const Int32* root,
         UInt64 mask, Int32 width) {
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[lane]);
        const Ray<T> ray(tree, lane3(start, width, lane), lane3(direction, width, lane));
        result[lane] = visit<true, AnyTriangle>(tree, ray, limit[lane], root[lane]).face;
    });
}

template <typename T>
void count(Int32* result, const UInt64* mesh, const T* start, const T* direction, const Int32* root, UInt64 mask,
           Int32 width) {
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, MeshDescriptor>(mesh[lane]);
        const Ray<T> ray(tree, lane3(start, width, lane), lane3(direction, width, lane));
        result[lane] = visit<false, CountTriangles>(tree, ray, kInfinity<T>, root[lane]).count;
    });
}

}  // namespace

#define WEFT_DEFINE(T, type)                                                                                           \
    WEFT_LIBRARY(weft_lib_mesh_ray_nearest_##type)(Int32 * result, const UInt64* mesh, const T* start,                 \
                                                   const T* direction, const T* limit, const Int32* root, UInt64 mask, \
                                                   Int32 width) {                                                      \
        nearest<T>(result, mesh, start, direction, limit, root, mask, width);                                          \
    }                                                                                                                  \
    WEFT_LIBRARY(weft_lib_mesh_ray_any_##type)(Int32 * result, const UInt64* mesh, const T* start, const T* direction, \
                                               const T* limit, const Int32* root, UInt64 mask, Int32 width) {          \
        any<T>(result, mesh, start, direction, limit, root, mask, width);                                              \
    }                                                                                                                  \
    WEFT_LIBRARY(weft_lib_mesh_ray_count_##type)(Int32 * result, const UInt64* mesh, const T* start,                   \
                                                 const T* direction, const Int32* root, UInt64 mask, Int32 width) {    \
        count<T>(result, mesh, start, direction, root, mask, width);                                                   \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE

}  // namespace weft::devlib
