// Rays and triangles.
//
// Intersections are watertight: a ray through a closed mesh hits it, even through an edge or a corner. Every triangle
// is transformed to the ray's frame: the longest axis becomes z, x and y are sheared, so that the ray is the z axis. A
// corner has the same coordinates there in every triangle that has it. The side of an edge on which the ray passes is
// the sign of one determinant of two products. Rounding keeps that sign or makes it 0; then it is computed exactly. (S.
// Woop, C. Benthin, I. Wald, Watertight Ray/Triangle Intersection, JCGT 2013.) The boxes are tested with a margin that
// exceeds the errors of both tests.
//
// Distances are measured along the longest axis of the direction here, so the length of the direction does not matter.
#pragma once

#include "devlib/spatial/traverse.h"

namespace weft::devlib {

// The frame of a ray, in which triangles are tested.
template <typename T>
struct Frame {
    Vec<T> origin;
    int axes[3];  // the frame's x, y, z; z is the longest axis of the direction
    T shear_x, shear_y, sign;
};

// The frame for triangles that for_each_triangle() gives with coordinates along its axes.
template <typename T>
Frame<T> along_axes(const Frame<T>& ray) {
#if defined(__NVPTX__)
    return {
        {component(ray.origin, ray.axes[0]), component(ray.origin, ray.axes[1]), component(ray.origin, ray.axes[2])},
        {0, 1, 2},
        ray.shear_x,
        ray.shear_y,
        ray.sign};
#else
    return ray;
#endif
}

template <typename T>
struct Ray : Frame<T> {
    using Frame<T>::origin, Frame<T>::axes, Frame<T>::shear_x, Frame<T>::shear_y, Frame<T>::sign;
    Vec<T> inverse;  // of the direction, scaled so that its longest component is 1
    Vec<T> margin;   // enlargement of boxes, as distance along the ray
    int near[3];     // the side of a box at which the ray enters: 0 lower, 1 upper
    T scale;
    bool is_valid;  // finite, with a non-zero direction

    Ray() = default;
    template <typename Of>
    Ray(const Tree<Of>& tree, Vec<T> start, Vec<T> direction) {
        origin = start;
        const T lengths[3] = {absolute(direction[0]), absolute(direction[1]), absolute(direction[2])};
        int z = lengths[1] > lengths[0] ? 1 : 0;
        if (lengths[2] > component(lengths, z)) z = 2;
        axes[0] = z == 2 ? 0 : z + 1, axes[1] = axes[0] == 2 ? 0 : axes[0] + 1, axes[2] = z;
        scale = component(lengths, z);
        const T sum = lengths[0] + lengths[1] + lengths[2];
        is_valid = scale > 0 && sum < kInfinity<T>;
        T extent = 0;
        for (int axis = 0; axis < 3; ++axis) {
            extent = greatest(
                extent, greatest(absolute(tree.lower[axis] - start[axis]), absolute(tree.upper[axis] - start[axis])));
            is_valid = is_valid && absolute(start[axis]) < kInfinity<T>;
        }
        extent = least(extent, Limits<T>::kSteepest);
        sign = component(direction, z) < 0 ? T(-1) : T(1);
        // A direction may be as short as the smallest number, so it is normalized first.
        shear_x = component(direction, axes[0]) / scale * sign, shear_y = component(direction, axes[1]) / scale * sign;
        for (int axis = 0; axis < 3; ++axis) {
            const T slope = direction[axis] / scale;
            near[axis] = slope < 0 ? 1 : 0;
            const T steep =
                absolute(slope) < T(1) / Limits<T>::kSteepest ? Limits<T>::kSteepest : T(1) / absolute(slope);
            inverse[axis] = slope < 0 ? -steep : steep;
            margin[axis] = T(6) * Limits<T>::kEpsilon * extent * steep;
        }
    }

    // For traverse(): the boxes that the ray meets before `limit`, and the distances of its entries.
    unsigned enter(const Node<T>& node, Int32, int at, T limit, Wide<T>& entry) const {
        return enter(node.bounds, at, limit, entry);
    }
    template <int kSlots>
    unsigned enter(const T (&bounds)[2][3][kSlots], int at, T limit, Wide<T>& entry) const {
#if !defined(__NVPTX__)          // whose assembler would fuse more than that
#pragma clang fp contract(fast)  // the margin exceeds any rounding error
#endif
        Wide<T> first = 0, last = limit;
#pragma clang loop unroll(full)
        for (int axis = 0; axis < 3; ++axis) {
#if defined(__NVPTX__)  // bounds are in registers, which have no addresses
            const T lower = bounds[0][axis][at], upper = bounds[1][axis][at];
            const T near_side = near[axis] != 0 ? upper : lower, far_side = near[axis] != 0 ? lower : upper;
#else
            const Wide<T> near_side = wide(bounds[near[axis]][axis], at),
                          far_side = wide(bounds[1 - near[axis]][axis], at);
#endif
            const Wide<T> to_near = (near_side - origin[axis]) * inverse[axis];
            const Wide<T> to_far = (far_side - origin[axis]) * inverse[axis];
            first = greatest<Wide<T>>(to_near - margin[axis], first);
            last = least<Wide<T>>(to_far + margin[axis], last);
        }
        entry = first;
        return bits(first <= last);
    }
};

// The sign of a * b - c * d, exactly: -1, 0, 1.
inline float exact_sign(float a, float b, float c, float d) {
    const double first = double(a) * double(b), second = double(c) * double(d);
    return first > second ? 1.0f : first < second ? -1.0f : 0.0f;
}
inline double exact_sign(double a, double b, double c, double d) {
    const double first = a * b, second = c * d;
    if (first != second) return first > second ? 1.0 : -1.0;
    const double first_rest = __builtin_fma(a, b, -first), second_rest = __builtin_fma(c, d, -second);
    return first_rest > second_rest ? 1.0 : first_rest < second_rest ? -1.0 : 0.0;
}

// Rays through an edge. inclusive: both triangles are hit. exclusive: the ray is moved infinitesimally, in the same way
// for all triangles, so that it crosses a closed surface once at any place.
enum class Edges { inclusive, exclusive };

template <typename T>
struct Crossing {
    Wide<T> distance;
    Wide<T> side;  // > 0: through the front, whose corners are counter-clockwise
};

// The triangles of a block from slot `at` on that the ray crosses at 0 <= distance < limit.
template <Edges kEdges, typename T>
unsigned cross_triangles(const Frame<T>& ray, const TriangleBlock<T>& block, int at, T limit, Crossing<T>& crossing) {
    using V = Wide<T>;
    V x[3], y[3], z[3];
#pragma clang loop unroll(full)
    for (int corner = 0; corner < 3; ++corner) {
        z[corner] = wide(block.corner[corner][ray.axes[2]], at) - component(ray.origin, ray.axes[2]);
        x[corner] =
            wide(block.corner[corner][ray.axes[0]], at) - component(ray.origin, ray.axes[0]) - ray.shear_x * z[corner];
        y[corner] =
            wide(block.corner[corner][ray.axes[1]], at) - component(ray.origin, ray.axes[1]) - ray.shear_y * z[corner];
    }
    // For each corner, the edge opposite to it.
    V edge[3];
    edge[0] = x[2] * y[1] - y[2] * x[1];
    edge[1] = x[0] * y[2] - y[0] * x[2];
    edge[2] = x[1] * y[0] - y[1] * x[0];
    auto is_zero = (edge[0] == 0) | (edge[1] == 0) | (edge[2] == 0);
    for (unsigned rest = bits(is_zero); rest != 0; rest &= rest - 1) {
        const int lane = lowest_bit(rest);
#if defined(__NVPTX__)
#pragma unroll
#endif
        for (int opposite = 0; opposite < 3; ++opposite) {
            if (lane_of(edge[opposite], lane) != 0) continue;
            const int from = opposite == 2 ? 0 : opposite + 1, to = opposite == 0 ? 2 : opposite - 1;
            const T from_x = lane_of(x[from], lane), from_y = lane_of(y[from], lane), to_x = lane_of(x[to], lane),
                    to_y = lane_of(y[to], lane);
            T side = exact_sign(to_x, from_y, to_y, from_x);
            if (kEdges == Edges::exclusive && side == 0) {
                if (to_y != from_y)
                    side = to_y > from_y ? T(1) : T(-1);
                else
                    side = from_x > to_x ? T(1) : from_x < to_x ? T(-1) : T(0);
            }
            set_lane(edge[opposite], lane, side * Limits<T>::kSmallest);
        }
    }
    const V determinant = edge[0] + edge[1] + edge[2];
    const V depth = edge[0] * z[0] + edge[1] * z[1] + edge[2] * z[2];
    const V distance = ray.sign * depth / determinant;
    auto is_front = kEdges == Edges::inclusive ? (edge[0] >= 0) & (edge[1] >= 0) & (edge[2] >= 0)
                                               : (edge[0] > 0) & (edge[1] > 0) & (edge[2] > 0);
    auto is_back = kEdges == Edges::inclusive ? (edge[0] <= 0) & (edge[1] <= 0) & (edge[2] <= 0)
                                              : (edge[0] < 0) & (edge[1] < 0) & (edge[2] < 0);
    crossing.distance = distance;
    crossing.side = -ray.sign * determinant;
    return bits((is_front | is_back) & (determinant != 0) & (distance >= 0) & (distance < limit));
}

template <typename T>
struct NearestTriangle {
    const TriangleBlock<T>* blocks;
    Frame<T> ray;
    T limit;
    Int32 face = -1;

    bool leaf(Int32 number, UInt32) {
        const TriangleBlock<T>& block = blocks[number];
        const Frame<T> frame = along_axes(ray);
        for_each_triangle(block, ray.axes, [&](const TriangleBlock<T>& of, int at, int slot) {
            Crossing<T> crossing;
            // Among equal distances the smaller face number wins, so that the result does not depend on the tree.
            const unsigned found =
                cross_triangles<Edges::inclusive>(frame, of, at, face < 0 ? limit : above(limit), crossing);
            for (unsigned rest = found; rest != 0; rest &= rest - 1) {
                const int lane = lowest_bit(rest);
                const T distance = lane_of(crossing.distance, lane);
                const Int32 item = block.item[slot + lane];
                if (face >= 0 && !(distance < limit) && !(distance == limit && item < face)) continue;
                limit = distance, face = item;
            }
            return found;
        });
        return false;
    }
    static T above(T value) { return value + value * Limits<T>::kEpsilon + Limits<T>::kSmallest; }
};

template <typename T>
struct AnyTriangle {
    const TriangleBlock<T>* blocks;
    Frame<T> ray;
    T limit;
    Int32 face = -1;

    bool leaf(Int32 number, UInt32) {
        const Frame<T> frame = along_axes(ray);
        const unsigned found = for_each_triangle(blocks[number], ray.axes, [&](const auto& of, int at, int) {
            Crossing<T> crossing;
            return cross_triangles<Edges::inclusive>(frame, of, at, limit, crossing);
        });
        if (found != 0) face = blocks[number].item[lowest_bit(found)];
        return found != 0;
    }
};

template <typename T>
struct CountTriangles {
    const TriangleBlock<T>* blocks;
    Frame<T> ray;
    T limit;
    Int32 count = 0;

    bool leaf(Int32 number, UInt32) {
        const Frame<T> frame = along_axes(ray);
        count += __builtin_popcount(for_each_triangle(blocks[number], ray.axes, [&](const auto& of, int at, int) {
            Crossing<T> crossing;
            return cross_triangles<Edges::exclusive>(frame, of, at, limit, crossing);
        }));
        return false;
    }
};

}  // namespace weft::devlib
