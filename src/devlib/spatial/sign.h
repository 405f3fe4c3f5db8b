// The side of a mesh on which a point is, given its closest point on the mesh.
//
// Inside a face, the face's normal decides. At an edge it is the sum of the normals of all faces with that edge. At a
// corner it is that of all faces around it, weighted by their angles there. These always point to the right side (J. A.
// Baerentzen, H. Aanaes, Signed Distance Computation Using the Angle Weighted Pseudonormal, 2005). So any of the
// closest faces gives the same result.
//
// The faces around a corner are found in the tree by its position: the mesh needs no adjacency, and faces need not
// share points. It also works after deformations. Everything is computed in f64.
#pragma once

#include "devlib/spatial/angle.h"
#include "devlib/spatial/point.h"

namespace weft::devlib {

using Real = Vec<double>;

// Meets boxes that contain one or two given points.
template <typename T>
struct BoxesWith {
    Vec<T> first, second;

    unsigned enter(const Node<T>& node, Int32, int at, T, Wide<T>& entry) const {
        entry = 0;
        WideMask<T> contains = wide(node.bounds[0][0], at) <= wide(node.bounds[1][0], at);
        for (int axis = 0; axis < 3; ++axis) {
            const Wide<T> lower = wide(node.bounds[0][axis], at), upper = wide(node.bounds[1][axis], at);
            contains &=
                (lower <= first[axis]) & (upper >= first[axis]) & (lower <= second[axis]) & (upper >= second[axis]);
        }
        return bits(contains);
    }
};

template <typename T>
Real corner_of(const TriangleBlock<T>& block, int lane, int corner) {
    return {double(block.corner[corner][0][lane]), double(block.corner[corner][1][lane]),
            double(block.corner[corner][2][lane])};
}
inline Real unit(const Real& v) {
    const double length = __builtin_elementwise_sqrt(dot(v, v));
    return length > 0 ? (1 / length) * v : Real{0, 0, 0};
}

// Adds the normals of faces that have a corner (or two) at given positions.
template <typename T>
struct SumNormals {
    const TriangleBlock<T>* blocks;
    Vec<T> first, second;
    bool is_edge;
    T limit = 0;
    Real sum{0, 0, 0};

    // The triangles that have this corner there.
    unsigned with(const TriangleBlock<T>& block, int corner, const Vec<T>& place) const {
        return for_each_part([&](int at) {
            return bits((wide(block.corner[corner][0], at) == place[0]) &
                        (wide(block.corner[corner][1], at) == place[1]) &
                        (wide(block.corner[corner][2], at) == place[2]));
        });
    }
    bool leaf(Int32 number, UInt32) {
        const TriangleBlock<T>& block = blocks[number];
        for (int corner = 0; corner < 3; ++corner) {
            unsigned lanes = with(block, corner, first);
            if (is_edge && lanes != 0)
                lanes &= with(block, (corner + 1) % 3, second) | with(block, (corner + 2) % 3, second);
            for (; lanes != 0; lanes &= lanes - 1) {
                const int lane = lowest_bit(lanes);
                const Real here = corner_of(block, lane, corner);
                const Real next = corner_of(block, lane, (corner + 1) % 3) - here;
                const Real last = corner_of(block, lane, (corner + 2) % 3) - here;
                const Real normal = cross(next, last);
                const double weight =
                    is_edge ? 1.0 : angle_of<double>(__builtin_elementwise_sqrt(dot(normal, normal)), dot(next, last));
                sum = sum + weight * unit(normal);
            }
        }
        return false;
    }
};

// The part of a triangle that a point is closest to: inside (-1), a corner, or an edge by its two corners.
struct Feature {
    int first = -1, second = -1;
    Real place;
};

inline Feature closest_feature(const Real& p, const Real (&corner)[3]) {
    Feature best;
    double least = kInfinity<double>;
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3;
        const Real along = corner[j] - corner[i], start = p - corner[i];
        const double size = dot(along, along), t = size > 0 ? dot(start, along) / size : 0;
        const double clamped = t <= 0 ? 0 : t >= 1 ? 1 : t;
        const Real place = clamped == 1 ? corner[j] : corner[i] + clamped * along;
        const double squared = dot(p - place, p - place);
        if (squared >= least) continue;
        least = squared;
        best = {clamped == 1 ? j : i, clamped > 0 && clamped < 1 ? j : -1, place};
    }
    const Real ab = corner[1] - corner[0], ac = corner[2] - corner[0], start = p - corner[0], normal = cross(ab, ac);
    const double area = dot(normal, normal);
    if (!(area > 0)) return best;
    const double v = dot(cross(start, ac), normal) / area, w = dot(cross(ab, start), normal) / area;
    if (v > 0 && w > 0 && v + w < 1) return {-1, -1, corner[0] + v * ab + w * ac};
    return best;
}

// 1 outside, -1 inside; 1 on the surface.
template <typename T>
Int32 side_of(const Tree<T>& tree, const Vec<T>& point, const FaceLocation& found) {
    const TriangleBlock<T>& block = tree.triangles[found.block];
    const Real p{double(point[0]), double(point[1]), double(point[2])};
    const Real corner[3] = {corner_of(block, found.lane, 0), corner_of(block, found.lane, 1),
                            corner_of(block, found.lane, 2)};
    const Feature feature = closest_feature(p, corner);
    const auto place = [&](int number) -> Vec<T> {
        return {block.corner[number][0][found.lane], block.corner[number][1][found.lane],
                block.corner[number][2][found.lane]};
    };
    if (feature.first < 0) return dot(p - corner[0], cross(corner[1] - corner[0], corner[2] - corner[0])) < 0 ? -1 : 1;
    SumNormals<T> visitor{tree.triangles, place(feature.first), place(feature.first), feature.second >= 0};
    if (visitor.is_edge) visitor.second = place(feature.second);
    BoxesWith<T> boxes{visitor.first, visitor.second};
    traverse<false>(tree, boxes, 0, visitor);
    return dot(p - feature.place, visitor.sum) < 0 ? -1 : 1;
}

}  // namespace weft::devlib
