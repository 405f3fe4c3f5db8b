// The face of a mesh with the closest or the furthest point.
//
// The distance to a triangle is the least of four: to its three edges, and to the projection of the point, if that is
// inside. Each is the distance to a point of the triangle, so that rounding in thin triangles never makes one look
// closer than it is. The result is the closest point up to rounding. Between two faces at the same distance, as at an
// edge, the choice can depend on the structure of the tree.
#pragma once

#include "devlib/spatial/traverse.h"

namespace weft::devlib {

template <typename T>
struct ClosestBoxes {
    Vec<T> point;

    unsigned enter(const Node<T>& node, Int32, int at, T limit, Wide<T>& entry) const {
        Wide<T> squared = 0;
#pragma clang loop unroll(full)
        for (int axis = 0; axis < 3; ++axis) {
            const Wide<T> below = wide(node.bounds[0][axis], at) - point[axis],
                          above = point[axis] - wide(node.bounds[1][axis], at);
            const Wide<T> outside = greatest<Wide<T>>(0, greatest<Wide<T>>(below, above));
            squared += outside * outside;
        }
        // Slightly reduced, so that rounding cannot hide a closer triangle.
        entry = squared * (1 - 16 * Limits<T>::kEpsilon);
        return bits(entry <= limit);
    }
};

// Keys are negative squared distances, so that the furthest child comes first.
template <typename T>
struct FurthestBoxes {
    Vec<T> point;

    unsigned enter(const Node<T>& node, Int32, int at, T limit, Wide<T>& entry) const {
        Wide<T> squared = 0, width = 1;
#pragma clang loop unroll(full)
        for (int axis = 0; axis < 3; ++axis) {
            const Wide<T> below = point[axis] - wide(node.bounds[0][axis], at),
                          above = wide(node.bounds[1][axis], at) - point[axis];
            const Wide<T> far = greatest<Wide<T>>(below, above);
            width = least<Wide<T>>(width, far);  // < 0 for empty boxes
            squared += far * far;
        }
        entry = -(squared * (1 + 16 * Limits<T>::kEpsilon));
        return bits((entry <= limit) & (width >= 0));
    }
};

template <typename T>
struct Block3 {
    Wide<T> x[3];

    friend Block3 operator-(const Block3& a, const Block3& b) {
        return {a.x[0] - b.x[0], a.x[1] - b.x[1], a.x[2] - b.x[2]};
    }
    friend Block3 operator*(const Wide<T>& s, const Block3& a) { return {s * a.x[0], s * a.x[1], s * a.x[2]}; }
    friend Wide<T> dot(const Block3& a, const Block3& b) { return a.x[0] * b.x[0] + a.x[1] * b.x[1] + a.x[2] * b.x[2]; }
    friend Block3 cross(const Block3& a, const Block3& b) {
        return {a.x[1] * b.x[2] - a.x[2] * b.x[1], a.x[2] * b.x[0] - a.x[0] * b.x[2],
                a.x[0] * b.x[1] - a.x[1] * b.x[0]};
    }
};
template <typename T>
Block3<T> corners(const TriangleBlock<T>& block, int corner, int at) {
    return {wide(block.corner[corner][0], at), wide(block.corner[corner][1], at), wide(block.corner[corner][2], at)};
}
// Vectors from the corners to the point.
template <typename T>
Block3<T> seen_from(const Block3<T>& corner, const Vec<T>& point) {
    return {point[0] - corner.x[0], point[1] - corner.x[1], point[2] - corner.x[2]};
}

// From a point to a segment; `start` leads from the segment's start to the point. For length 0, t is NaN and becomes 0.
template <typename T>
Wide<T> squared_distance(const Block3<T>& start, const Block3<T>& along) {
    const Wide<T> t = dot(start, along) / dot(along, along);
    const Block3<T> rest = start - least<Wide<T>>(greatest<Wide<T>>(t, 0), 1) * along;
    return dot(rest, rest);
}

template <typename T>
Wide<T> squared_distance(const TriangleBlock<T>& block, int at, const Vec<T>& point) {
    const Block3<T> a = corners(block, 0, at), b = corners(block, 1, at), c = corners(block, 2, at);
    const Block3<T> ab = b - a, ac = c - a, bc = c - b, from_a = seen_from(a, point), from_b = seen_from(b, point);
    const Wide<T> edges = least<Wide<T>>(least<Wide<T>>(squared_distance(from_a, ab), squared_distance(from_a, ac)),
                                         squared_distance(from_b, bc));
    const Block3<T> normal = cross(ab, ac);
    const Wide<T> inverse = T(1) / dot(normal, normal);
    Wide<T> v = dot(cross(from_a, ac), normal) * inverse, w = dot(cross(ab, from_a), normal) * inverse;
    // For nearly all blocks, no triangle contains the projection of the point.
    const T near = T(0.05);
    if (bits((v >= -near) & (w >= -near) & (v + w <= 1 + near)) == 0) return edges;
    // In long thin triangles v and w are inaccurate by the ratio of the lengths: a second step removes the remainder in
    // the plane.
    Block3<T> rest = from_a - v * ab - w * ac;
    const Wide<T> more_v = dot(cross(rest, ac), normal) * inverse, more_w = dot(cross(ab, rest), normal) * inverse;
    v += more_v, w += more_w;
    rest = rest - more_v * ab - more_w * ac;
    const Wide<T> inside = dot(rest, rest);
    return ((v >= 0) & (w >= 0) & (v + w <= 1) & (inside < edges)) ? inside : edges;
}

// The position of a face in the tree.
struct FaceLocation {
    Int32 face = -1;
    Int32 block = 0, lane = 0;
};

// Keeps the face with the least key, if that is less than the first limit.
template <typename T>
struct LeastKey {
    T limit;
    FaceLocation found;

    // The keys of a block's items from slot `at` on. Returns a mask of them.
    unsigned offer(const Wide<T>& keys, const Int32 (&items)[kWidth], Int32 block, int at) {
        const unsigned offered = bits(keys <= limit);
        for (unsigned rest = offered; rest != 0; rest &= rest - 1) {
            const int lane = lowest_bit(rest);
            const T key = lane_of(keys, lane);
            const Int32 item = items[at + lane];
            const bool is_tie = found.face >= 0 && key == limit && item < found.face;
            if (!(key < limit) && !is_tie) continue;
            limit = key;
            found = {item, block, at + lane};
        }
        return offered;
    }
};

template <typename T>
struct ClosestTriangle : LeastKey<T> {
    const TriangleBlock<T>* blocks;
    Vec<T> point;

    bool leaf(Int32 block, UInt32) {
        for_each_triangle(blocks[block], kOwnAxes, [&](const TriangleBlock<T>& of, int at, int slot) {
            return this->offer(squared_distance(of, at, point), blocks[block].item, block, slot);
        });
        return false;
    }
};

// The furthest point of a triangle is a corner.
template <typename T>
struct FurthestTriangle : LeastKey<T> {
    const TriangleBlock<T>* blocks;
    Vec<T> point;

    bool leaf(Int32 block, UInt32) {
        for_each_triangle(blocks[block], kOwnAxes, [&](const TriangleBlock<T>& of, int at, int slot) {
            Wide<T> farthest = -1;
            for (int corner = 0; corner < 3; ++corner) {
                const Block3<T> to = seen_from(corners(of, corner, at), point);
                farthest = greatest<Wide<T>>(dot(to, to), farthest);
            }
            return this->offer(-farthest, blocks[block].item, block, slot);
        });
        return false;
    }
};

template <typename T>
ClosestTriangle<T> closest_triangle(const Tree<T>& tree, const Vec<T>& point, T limit) {
    return {{limit > 0 ? limit * limit : 0, {}}, tree.triangles, point};
}

// Faces farther than `limit`; any distance if that is negative.
template <typename T>
FaceLocation furthest_face(const Tree<T>& tree, const Vec<T>& point, T limit) {
    FurthestTriangle<T> visitor{{limit >= 0 ? -(limit * limit) : T(1), {}}, tree.triangles, point};
    FurthestBoxes<T> boxes{point};
    if (tree.node_count > 0) traverse<true>(tree, boxes, 0, visitor);
    return visitor.found;
}

}  // namespace weft::devlib
