// Queries of BVHs and meshes that give one item after the other. The result is the next item (-1: there is none), and
// the four numbers of the walk after it.
#include "devlib/spatial/overlap.h"

#include "devlib/spatial/functions.h"

namespace weft::devlib {

namespace {

// shape(tree, lane) makes the query of a lane.
template <typename T, template <typename> typename Descriptor, typename ShapeOf>
void next(Int32* result, const UInt64* object, const Int32* root, const Int32* walk, UInt64 mask, Int32 width,
          const ShapeOf& shape) {
    for_each_lane(mask, [&](int lane) {
        const Tree<T> tree = tree_of<T, Descriptor>(object[lane]);
        Walk here{walk[lane], walk[width + lane], walk[2 * width + lane], walk[3 * width + lane]};
        const auto step = [&](const auto& of) { result[lane] = next_item(tree, of, root[lane], here); };
        shape(tree, lane, step);
        result[width + lane] = here.node, result[2 * width + lane] = here.children;
        result[3 * width + lane] = here.block, result[4 * width + lane] = here.items;
    });
}

template <typename T, template <typename> typename Descriptor>
void next_box(Int32* result, const UInt64* object, const T* lower, const T* upper, const Int32* root, const Int32* walk,
              UInt64 mask, Int32 width) {
    next<T, Descriptor>(result, object, root, walk, mask, width, [&](const Tree<T>&, int lane, const auto& step) {
        step(BoxShape<T>{lane3(lower, width, lane), lane3(upper, width, lane)});
    });
}

template <typename T, template <typename> typename Descriptor, template <typename> typename Shape>
void next_sphere(Int32* result, const UInt64* object, const T* centre, const T* radius, const Int32* root,
                 const Int32* walk, UInt64 mask, Int32 width) {
    next<T, Descriptor>(result, object, root, walk, mask, width, [&](const Tree<T>&, int lane, const auto& step) {
        step(Shape<T>(lane3(centre, width, lane), radius[lane]));
    });
}

template <typename T>
void next_ray(Int32* result, const UInt64* object, const T* start, const T* direction, const T* limit,
              const Int32* root, const Int32* walk, UInt64 mask, Int32 width) {
    next<T, BvhDescriptor>(result, object, root, walk, mask, width,
                           [&](const Tree<T>& tree, int lane, const auto& step) {
                               const Ray<T> ray(tree, lane3(start, width, lane), lane3(direction, width, lane));
                               step(RayShape<T>{ray, limit[lane]});
                           });
}

template <typename T>
void next_capsule(Int32* result, const UInt64* object, const T* start, const T* direction, const T* radius,
                  const T* limit, const Int32* root, const Int32* walk, UInt64 mask, Int32 width) {
    next<T, BvhDescriptor>(result, object, root, walk, mask, width,
                           [&](const Tree<T>& tree, int lane, const auto& step) {
                               const Ray<T> ray(tree, lane3(start, width, lane), lane3(direction, width, lane));
                               step(CapsuleShape<T>{ray, limit[lane], radius[lane]});
                           });
}

// The root of a group; -1 where there is no such group.
template <typename T>
Int32 find_group(const Tree<T>& tree, Int32 group) {
    Int32 first = 0, last = tree.group_count;
    while (first < last) {
        const Int32 middle = first + (last - first) / 2;
        if (tree.groups[middle] < group)
            first = middle + 1;
        else
            last = middle;
    }
    return first < tree.group_count && tree.groups[first] == group ? tree.group_roots[first] : -1;
}

template <template <typename> typename Descriptor>
void group_root(Int32* result, const UInt64* object, const Int32* group, UInt64 mask) {
    for_each_lane(mask, [&](int lane) {
        const Tree<double> tree = tree_of<double, Descriptor>(object[lane]);
        result[lane] = tree.node_count > 0 ? find_group(tree, group[lane])
                                           : find_group(tree_of<float, Descriptor>(object[lane]), group[lane]);
    });
}

}  // namespace

WEFT_LIBRARY(weft_lib_bvh_group_root)(Int32* result, const UInt64* of, const Int32* group, UInt64 mask, Int32) {
    group_root<BvhDescriptor>(result, of, group, mask);
}
WEFT_LIBRARY(weft_lib_mesh_group_root)(Int32* result, const UInt64* of, const Int32* group, UInt64 mask, Int32) {
    group_root<MeshDescriptor>(result, of, group, mask);
}

#define WEFT_DEFINE_BOTH(T, type, object, Descriptor, Sphere)                                                   \
    WEFT_LIBRARY(weft_lib_##object##_next_box_##type)(Int32 * result, const UInt64* of, const T* lower,         \
                                                      const T* upper, const Int32* root, const Int32* walk,     \
                                                      UInt64 mask, Int32 width) {                               \
        next_box<T, Descriptor>(result, of, lower, upper, root, walk, mask, width);                             \
    }                                                                                                           \
    WEFT_LIBRARY(weft_lib_##object##_next_sphere_##type)(Int32 * result, const UInt64* of, const T* centre,     \
                                                         const T* radius, const Int32* root, const Int32* walk, \
                                                         UInt64 mask, Int32 width) {                            \
        next_sphere<T, Descriptor, Sphere>(result, of, centre, radius, root, walk, mask, width);                \
    }
#define WEFT_DEFINE(T, type)                                                                                         \
    WEFT_DEFINE_BOTH(T, type, bvh, BvhDescriptor, SphereShape)                                                       \
    WEFT_DEFINE_BOTH(T, type, mesh, MeshDescriptor, BallShape)                                                       \
    WEFT_LIBRARY(weft_lib_bvh_next_ray_##type)(Int32 * result, const UInt64* of, const T* start, const T* direction, \
                                               const T* limit, const Int32* root, const Int32* walk, UInt64 mask,    \
                                               Int32 width) {                                                        \
        next_ray<T>(result, of, start, direction, limit, root, walk, mask, width);                                   \
    }                                                                                                                \
    WEFT_LIBRARY(weft_lib_bvh_next_capsule_##type)(Int32 * result, const UInt64* of, const T* start,                 \
                                                   const T* direction, const T* radius, const T* limit,              \
                                                   const Int32* root, const Int32* walk, UInt64 mask, Int32 width) { \
        next_capsule<T>(result, of, start, direction, radius, limit, root, walk, mask, width);                       \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE
#undef WEFT_DEFINE_BOTH

}  // namespace weft::devlib
