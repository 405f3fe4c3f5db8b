// Queries that return one item after the other: everything whose box meets a box, a sphere, a ray or a capsule, and the
// triangles that meet a ball.
//
// They are loops of the kernel, so their state has to be small: no stack. The position of a walk is a node with its
// unvisited children, and a block with its remaining items. On the way up, a node's parent and slot give the next
// position, and the parent's boxes are tested again.
#pragma once

#include "devlib/spatial/ray.h"
#include "devlib/spatial/sign.h"

namespace weft::devlib {

// The state of a walk, which the kernel keeps. It begins at the root of the query with children = -1 and zeros.
struct Walk {
    Int32 node;      // kEnd: there are no more items
    Int32 children;  // bit mask; -1: the boxes were not tested yet
    Int32 block;
    Int32 items;  // bit mask

    static constexpr Int32 kEnd = -2;
};

// The boxes that a shape meets. A shape in float64 may query a tree in float32: numbers are converted, which is exact.
template <typename Shape, typename T>
unsigned meet_boxes(const Shape& shape, const T (&bounds)[2][3][kWidth]) {
    using Number = typename Shape::Number;
    return for_each_part([&](int at) {
        if constexpr (__is_same(Number, T)) {
            return shape.meet(bounds, at);
        } else {
            Number converted[2][3][kLanes] __attribute__((aligned(64)));
            for (int side = 0; side < 2; ++side)
                for (int axis = 0; axis < 3; ++axis)
                    for (int i = 0; i < kLanes; ++i) converted[side][axis][i] = Number(bounds[side][axis][at + i]);
            return shape.meet(converted, 0);
        }
    });
}

// The triangles of a block from slot `at` on whose boxes meet the shape.
template <typename T, typename Shape>
unsigned meet_triangles(const Shape& shape, const TriangleBlock<T>& triangles, int at) {
    T bounds[2][3][kLanes] __attribute__((aligned(64)));
    for (int axis = 0; axis < 3; ++axis) {
        const Wide<T> a = wide(triangles.corner[0][axis], at), b = wide(triangles.corner[1][axis], at),
                      c = wide(triangles.corner[2][axis], at);
        *reinterpret_cast<Wide<T>*>(bounds[0][axis]) = least<Wide<T>>(least<Wide<T>>(a, b), c);
        *reinterpret_cast<Wide<T>*>(bounds[1][axis]) = greatest<Wide<T>>(greatest<Wide<T>>(a, b), c);
    }
    return shape.meet(bounds, 0);
}

// The items of a block that meet the shape.
template <typename T, typename Shape>
unsigned meet_items(const Tree<T>& tree, const Shape& shape, Int32 block) {
    using Number = typename Shape::Number;
    if (tree.boxes != nullptr) return meet_boxes(shape, tree.boxes[block].bounds);
    const TriangleBlock<T>& triangles = tree.triangles[block];
    return for_each_part([&](int at) {
        if constexpr (__is_same(Number, T)) {
            return meet_triangles(shape, triangles, at);
        } else {
            TriangleBlock<Number> converted;
            for (int corner = 0; corner < 3; ++corner)
                for (int axis = 0; axis < 3; ++axis)
                    for (int i = at; i < at + kLanes; ++i)
                        converted.corner[corner][axis][i] = Number(triangles.corner[corner][axis][i]);
            return meet_triangles(shape, converted, at);
        }
    });
}

// The number of the next item, -1 at the end.
template <typename T, typename Shape>
Int32 next_item(const Tree<T>& tree, const Shape& shape, Int32 root, Walk& walk) {
    while (true) {
        if (walk.items != 0) {
            const int lane = lowest_bit(unsigned(walk.items));
            walk.items &= walk.items - 1;
            return tree.boxes != nullptr ? tree.boxes[walk.block].item[lane] : tree.triangles[walk.block].item[lane];
        }
        if (walk.node == -1) walk.node = 0;
        if (walk.node < 0 || walk.node >= tree.node_count) {
            walk.node = Walk::kEnd;
            return -1;
        }
        const Node<T>& node = tree.nodes[walk.node];
        if (walk.children < 0) walk.children = Int32(meet_boxes(shape, node.bounds) & ((1u << node.count) - 1));
        if (walk.children != 0) {
            const int slot = lowest_bit(unsigned(walk.children));
            walk.children &= walk.children - 1;
            const Int32 child = node.child[slot];
            if (child >= 0) {
                walk.node = child, walk.children = -1;
            } else {
                walk.block = -1 - child;
                walk.items = Int32(meet_items(tree, shape, walk.block));
            }
        } else if (walk.node == root || node.parent < 0) {
            walk.node = Walk::kEnd;
        } else {
            // The later siblings of this node.
            const Node<T>& parent = tree.nodes[node.parent];
            walk.children = Int32(meet_boxes(shape, parent.bounds) & ((1u << parent.count) - 1) & (~1u << node.slot));
            walk.node = node.parent;
        }
    }
}

// ---- shapes: meet(bounds, at) is a mask of the boxes from slot `at` on that they meet, without empty boxes ----

// Meets boxes that touch, too.
template <typename T>
struct BoxShape {
    using Number = T;

    Vec<T> lower, upper;

    template <int kSlots>
    unsigned meet(const T (&bounds)[2][3][kSlots], int at) const {
        WideMask<T> all = wide(bounds[0][0], at) <= wide(bounds[1][0], at);
        for (int axis = 0; axis < 3; ++axis)
            all &= (wide(bounds[0][axis], at) <= upper[axis]) & (wide(bounds[1][axis], at) >= lower[axis]);
        return bits(all);
    }
};

// Meets boxes at most the radius away. A negative radius counts as 0.
template <typename T>
struct SphereShape {
    using Number = T;

    Vec<T> centre;
    T radius;

    SphereShape(const Vec<T>& of, T reach) : centre(of), radius(reach < 0 ? 0 : reach) {}

    template <int kSlots>
    unsigned meet(const T (&bounds)[2][3][kSlots], int at) const {
        Wide<T> squared = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const Wide<T> below = wide(bounds[0][axis], at) - centre[axis],
                          above = centre[axis] - wide(bounds[1][axis], at);
            const Wide<T> outside = greatest<Wide<T>>(0, greatest<Wide<T>>(below, above));
            squared += outside * outside;
        }
        // Includes boxes at exactly that distance despite rounding.
        return radius >= 0 ? bits((squared * (1 - 8 * Limits<T>::kEpsilon) <= radius * radius) &
                                  (wide(bounds[0][0], at) <= wide(bounds[1][0], at)))
                           : 0;
    }
};

// For boxes, a sphere; for triangles, exactly those that are at most the radius away.
template <typename T>
struct BallShape : SphereShape<T> {
    using SphereShape<T>::SphereShape;
};

template <typename T>
unsigned meet_triangles(const BallShape<T>& ball, const TriangleBlock<T>& triangles, int at) {
    const Vec<T>& centre = ball.centre;
    const T limit = ball.radius * ball.radius;
    const Wide<T> squared = squared_distance(triangles, at, centre);
    Wide<T> extent = 0;
    for (int corner = 0; corner < 3; ++corner) {
        const Block3<T> to = seen_from(corners(triangles, corner, at), centre);
        extent = greatest<Wide<T>>(extent, dot(to, to));
    }
    // The rounding error is proportional to the corners' distances: within that error, the distance is computed in f64.
    const Wide<T> slack = 64 * Limits<T>::kEpsilon * extent;
    unsigned found = bits(squared <= limit - slack);
    for (unsigned rest = bits(squared <= limit + slack) & ~found; rest != 0; rest &= rest - 1) {
        const int lane = lowest_bit(rest), slot = at + lane;
        const Real p{double(centre[0]), double(centre[1]), double(centre[2])}, radius{double(ball.radius), 0, 0};
        const Real corner[3] = {corner_of(triangles, slot, 0), corner_of(triangles, slot, 1),
                                corner_of(triangles, slot, 2)};
        const Real way = p - closest_feature(p, corner).place;
        if (dot(way, way) * (1 - 1e-14) <= dot(radius, radius)) found |= 1u << lane;
    }
    return found;
}

// Meets boxes that the ray enters at most `limit` from its start, in lengths of its direction.
template <typename T>
struct RayShape {
    using Number = T;

    const Ray<T>& ray;
    T limit;

    template <int kSlots>
    unsigned meet(const T (&bounds)[2][3][kSlots], int at) const {
        Wide<T> entry;
        if (!ray.is_valid) return 0;
        return ray.enter(bounds, at, limit * ray.scale, entry) & bits(wide(bounds[0][0], at) <= wide(bounds[1][0], at));
    }
};

// A ball that moves along a ray. Meets all boxes that it touches, and some more near their corners, as the boxes are
// enlarged by the radius on all sides. A negative radius counts as 0.
template <typename T>
struct CapsuleShape {
    using Number = T;

    const Ray<T>& ray;
    T limit, radius;

    template <int kSlots>
    unsigned meet(const T (&bounds)[2][3][kSlots], int at) const {
        if (!ray.is_valid || radius != radius) return 0;
        const T reach = least(radius < 0 ? T(0) : radius, Limits<T>::kSteepest) * (1 + 8 * Limits<T>::kEpsilon);
        T larger[2][3][kLanes] __attribute__((aligned(64)));
        for (int axis = 0; axis < 3; ++axis) {
            *reinterpret_cast<Wide<T>*>(larger[0][axis]) = wide(bounds[0][axis], at) - reach;
            *reinterpret_cast<Wide<T>*>(larger[1][axis]) = wide(bounds[1][axis], at) + reach;
        }
        Wide<T> entry;
        return ray.enter(larger, 0, limit * ray.scale, entry) & bits(wide(bounds[0][0], at) <= wide(bounds[1][0], at));
    }
};

}  // namespace weft::devlib
