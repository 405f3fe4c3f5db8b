// Points and meshes: the closest face, optionally with the side on which the point is, and the furthest face.
#include "devlib/spatial/functions.h"
#include "devlib/spatial/sign.h"

namespace weft::devlib {

namespace {

template <typename T>
struct PointQuery {
    Tree<T> tree;
    ClosestBoxes<T> shape;
    ClosestTriangle<T> visitor;
    Int32 root;

    // False if the tree is empty.
    bool begin(const Tree<T>& of, const Vec<T>& point, T limit) {
        tree = of, shape = {point}, visitor = closest_triangle(of, point, limit), root = 0;
        return of.node_count > 0;
    }
};

template <typename T, typename Finish>
void find_closest(const UInt64* mesh, const T* point, const T* limit, UInt64 mask, Int32 width, const Finish& finish) {
    traverse_each<true, T, PointQuery<T>>(
        mask,
        [&](int lane, PointQuery<T>& query) {
            return query.begin(tree_of<T, MeshDescriptor>(mesh[lane]), lane3(point, width, lane), limit[lane]);
        },
        finish);
}

template <typename T>
void closest(Int32* result, const UInt64* mesh, const T* point, const T* limit, UInt64 mask, Int32 width) {
    find_closest(mesh, point, limit, mask, width,
                 [&](int lane, const PointQuery<T>& query) { result[lane] = query.visitor.found.face; });
}

// The face, and 1 outside or -1 inside.
template <typename T>
void closest_side(Int32* result, const UInt64* mesh, const T* point, const T* limit, UInt64 mask, Int32 width) {
    find_closest(mesh, point, limit, mask, width, [&](int lane, const PointQuery<T>& query) {
        const FaceLocation& found = query.visitor.found;
        result[lane] = found.face;
        result[width + lane] = found.face < 0 ? 1 : side_of(query.tree, query.shape.point, found);
    });
}

template <typename T>
void furthest(Int32* result, const UInt64* mesh, const T* point, const T* limit, UInt64 mask, Int32 width) {
    for_each_lane(mask, [&](int lane) {
        result[lane] =
            furthest_face(tree_of<T, MeshDescriptor>(mesh[lane]), lane3(point, width, lane), limit[lane]).face;
    });
}

}  // namespace

#define WEFT_DEFINE(T, type)                                                                                          \
    WEFT_LIBRARY(weft_lib_mesh_point_closest_##type)(Int32 * result, const UInt64* mesh, const T* point,              \
                                                     const T* limit, UInt64 mask, Int32 width) {                      \
        closest<T>(result, mesh, point, limit, mask, width);                                                          \
    }                                                                                                                 \
    WEFT_LIBRARY(weft_lib_mesh_point_side_##type)(Int32 * result, const UInt64* mesh, const T* point, const T* limit, \
                                                  UInt64 mask, Int32 width) {                                         \
        closest_side<T>(result, mesh, point, limit, mask, width);                                                     \
    }                                                                                                                 \
    WEFT_LIBRARY(weft_lib_mesh_point_furthest_##type)(Int32 * result, const UInt64* mesh, const T* point,             \
                                                      const T* limit, UInt64 mask, Int32 width) {                     \
        furthest<T>(result, mesh, point, limit, mask, width);                                                         \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE

}  // namespace weft::devlib
