// Queries of BVHs and meshes that return one item after the other. The result is the next item (-1: none), and the four
// numbers of the walk after it.
#include "devlib/spatial/overlap.h"

#include "devlib/spatial/functions.h"

namespace weft::devlib {

namespace {

// The arguments of a query, from which a lane's shape is made.
template <typename T>
struct Arguments {
    const T *first, *second, *radius, *limit;
    Int32 width;

    template <typename As>
    Vec<As> first_as(int lane) const {
        return lane3_as<As>(first, width, lane);
    }
    template <typename As>
    Vec<As> second_as(int lane) const {
        return lane3_as<As>(second, width, lane);
    }
};

// The kind of query: with(arguments, lane, tree, step) calls step() with the shape, in numbers of type `As`.
struct OfBox {
    template <typename As, typename T, typename Of, typename Step>
    static void with(const Arguments<T>& from, int lane, const Tree<Of>&, const Step& step) {
        step(BoxShape<As>{from.template first_as<As>(lane), from.template second_as<As>(lane)});
    }
};
template <template <typename> typename Shape>
struct OfSphere {
    template <typename As, typename T, typename Of, typename Step>
    static void with(const Arguments<T>& from, int lane, const Tree<Of>&, const Step& step) {
        step(Shape<As>(from.template first_as<As>(lane), As(from.radius[lane])));
    }
};
struct OfRay {
    template <typename As, typename T, typename Of, typename Step>
    static void with(const Arguments<T>& from, int lane, const Tree<Of>& tree, const Step& step) {
        const Ray<As> ray(tree, from.template first_as<As>(lane), from.template second_as<As>(lane));
        step(RayShape<As>{ray, As(from.limit[lane])});
    }
};
struct OfCapsule {
    template <typename As, typename T, typename Of, typename Step>
    static void with(const Arguments<T>& from, int lane, const Tree<Of>& tree, const Step& step) {
        const Ray<As> ray(tree, from.template first_as<As>(lane), from.template second_as<As>(lane));
        step(CapsuleShape<As>{ray, As(from.limit[lane]), As(from.radius[lane])});
    }
};

// Computes in the type of the query if the object has the same one, and in f64 if either of them is f64.
template <typename Shape, template <typename> typename Descriptor, typename T>
void next(Int32* result, const UInt64* object, const Arguments<T>& from, const Int32* root, const Int32* walk,
          UInt64 mask) {
    const Int32 width = from.width;
    for_each_lane(mask, [&](int lane) {
        Walk here{walk[lane], walk[width + lane], walk[2 * width + lane], walk[3 * width + lane]};
        const auto walk_on = [&](const auto& tree, auto zero) {
            Shape::template with<decltype(zero)>(
                from, lane, tree, [&](const auto& shape) { result[lane] = next_item(tree, shape, root[lane], here); });
        };
        using Other = typename OtherReal<T>::Type;
        if (is_of<Other, Descriptor>(object[lane]))
            walk_on(tree_of<Other, Descriptor>(object[lane]), double(0));
        else
            walk_on(tree_of<T, Descriptor>(object[lane]), T(0));
        result[width + lane] = here.node, result[2 * width + lane] = here.children;
        result[3 * width + lane] = here.block, result[4 * width + lane] = here.items;
    });
}

// The root of a group; -1 if there is no such group.
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

#define WEFT_DEFINE_BOTH(T, type, object, Descriptor, Sphere)                                                       \
    WEFT_LIBRARY(weft_lib_##object##_next_box_##type)(Int32 * result, const UInt64* of, const T* lower,             \
                                                      const T* upper, const Int32* root, const Int32* walk,         \
                                                      UInt64 mask, Int32 width) {                                   \
        next<OfBox, Descriptor>(result, of, Arguments<T>{lower, upper, nullptr, nullptr, width}, root, walk, mask); \
    }                                                                                                               \
    WEFT_LIBRARY(weft_lib_##object##_next_sphere_##type)(Int32 * result, const UInt64* of, const T* centre,         \
                                                         const T* radius, const Int32* root, const Int32* walk,     \
                                                         UInt64 mask, Int32 width) {                                \
        next<OfSphere<Sphere>, Descriptor>(result, of, Arguments<T>{centre, nullptr, radius, nullptr, width}, root, \
                                           walk, mask);                                                             \
    }
#define WEFT_DEFINE(T, type)                                                                                         \
    WEFT_DEFINE_BOTH(T, type, bvh, BvhDescriptor, SphereShape)                                                       \
    WEFT_DEFINE_BOTH(T, type, mesh, MeshDescriptor, BallShape)                                                       \
    WEFT_LIBRARY(weft_lib_bvh_next_ray_##type)(Int32 * result, const UInt64* of, const T* start, const T* direction, \
                                               const T* limit, const Int32* root, const Int32* walk, UInt64 mask,    \
                                               Int32 width) {                                                        \
        next<OfRay, BvhDescriptor>(result, of, Arguments<T>{start, direction, nullptr, limit, width}, root, walk,    \
                                   mask);                                                                            \
    }                                                                                                                \
    WEFT_LIBRARY(weft_lib_bvh_next_capsule_##type)(Int32 * result, const UInt64* of, const T* start,                 \
                                                   const T* direction, const T* radius, const T* limit,              \
                                                   const Int32* root, const Int32* walk, UInt64 mask, Int32 width) { \
        next<OfCapsule, BvhDescriptor>(result, of, Arguments<T>{start, direction, radius, limit, width}, root, walk, \
                                       mask);                                                                        \
    }
WEFT_DEFINE(float, f32)
WEFT_DEFINE(double, f64)
#undef WEFT_DEFINE
#undef WEFT_DEFINE_BOTH

}  // namespace weft::devlib
