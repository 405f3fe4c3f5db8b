// The geometry of a tree from its items (layout.h), block by block and node by node, for builders on the host and on
// devices. Numbers of points and boxes are packed.
#pragma once

#include "devlib/spatial/layout.h"

namespace weft::devlib {

template <typename T>
void set_empty(T (&bounds)[2][3][kWidth], int slot) {
    for (int axis = 0; axis < 3; ++axis)
        bounds[0][axis][slot] = __builtin_inff(), bounds[1][axis][slot] = -__builtin_inff();
}

// Sets the box of a child to the union of its node's boxes.
template <typename T>
void set_union(T (&bounds)[2][3][kWidth], int slot, const T (&of)[2][3][kWidth]) {
    for (int axis = 0; axis < 3; ++axis) {
        T lower = of[0][axis][0], upper = of[1][axis][0];
        for (int i = 1; i < kWidth; ++i) {
            lower = of[0][axis][i] < lower ? of[0][axis][i] : lower;
            upper = upper < of[1][axis][i] ? of[1][axis][i] : upper;
        }
        bounds[0][axis][slot] = lower, bounds[1][axis][slot] = upper;
    }
}

// The triangles of a block, whose corners are points by these numbers (by corner and lane, -1 for unused lanes), and
// its box. Corners that are not finite make a triangle of NaN.
template <typename T, typename PointAt>
void refit_triangles(TriangleBlock<T>& block, const Int32* corners, const PointAt& point_at, T (&bounds)[2][3][kWidth],
                     int slot) {
    T lower[3], upper[3];
    for (int axis = 0; axis < 3; ++axis) lower[axis] = __builtin_inff(), upper[axis] = -__builtin_inff();
    for (int lane = 0; lane < kWidth && corners[lane] >= 0; ++lane) {
        const T* const a = point_at(corners[lane]);
        const T* const b = point_at(corners[kWidth + lane]);
        const T* const c = point_at(corners[2 * kWidth + lane]);
        T sum = 0;  // 0, or NaN if a coordinate is not finite
        for (int axis = 0; axis < 3; ++axis) sum += (a[axis] - a[axis]) + (b[axis] - b[axis]) + (c[axis] - c[axis]);
        for (int axis = 0; axis < 3; ++axis) {
            block.corner[0][axis][lane] = a[axis] + sum;
            block.corner[1][axis][lane] = b[axis] + sum;
            block.corner[2][axis][lane] = c[axis] + sum;
            if (sum != 0) continue;
            const T all[3] = {a[axis], b[axis], c[axis]};
            for (const T x : all) {
                lower[axis] = x < lower[axis] ? x : lower[axis];
                upper[axis] = upper[axis] < x ? x : upper[axis];
            }
        }
    }
    for (int axis = 0; axis < 3; ++axis) bounds[0][axis][slot] = lower[axis], bounds[1][axis][slot] = upper[axis];
}

// The boxes of a block, by the numbers of its items, and their union. A box with a NaN, or with a lower corner above
// the upper one, is empty.
template <typename T, typename LowerAt, typename UpperAt>
void refit_boxes(BoxBlock<T>& block, const LowerAt& lower_at, const UpperAt& upper_at, T (&bounds)[2][3][kWidth],
                 int slot) {
    for (int lane = 0; lane < kWidth; ++lane) {
        const Int32 item = block.item[lane];
        set_empty(block.bounds, lane);
        if (item < 0) continue;
        const T *const lower = lower_at(item), *const upper = upper_at(item);
        if (!(lower[0] <= upper[0] && lower[1] <= upper[1] && lower[2] <= upper[2])) continue;
        for (int axis = 0; axis < 3; ++axis)
            block.bounds[0][axis][lane] = lower[axis], block.bounds[1][axis][lane] = upper[axis];
    }
    set_union(bounds, slot, block.bounds);
}

// The moments of each child of a node: of its triangles, or of the children below it, relative to the centre of its
// box. Precondition: the moments of the nodes below are there.
template <typename T>
void sum_up_moments(const Node<T>* nodes, const TriangleBlock<T>* blocks, Moments<T>* all, Int32 number) {
    const Node<T>& node = nodes[number];
    Moments<T>& moments = all[number];
    const auto middle = [](const Node<T>& of, int slot, double (&c)[3]) {
        for (int axis = 0; axis < 3; ++axis)
            c[axis] = (double(of.bounds[0][axis][slot]) + double(of.bounds[1][axis][slot])) / 2;
    };
    for (int slot = 0; slot < kWidth; ++slot) {
        double normal[3] = {0, 0, 0}, spread[6] = {0, 0, 0, 0, 0, 0}, c[3];
        middle(node, slot, c);
        // Adds a surface around x with the integral n of its normal.
        const auto add = [&](const double (&n)[3], const double (&x)[3]) {
            for (int i = 0; i < 3; ++i) {
                const int j = (i + 1) % 3;
                normal[i] += n[i];
                spread[i] += (x[i] - c[i]) * n[i];
                spread[3 + i] += (x[i] - c[i]) * n[j] + (x[j] - c[j]) * n[i];
            }
        };
        const Int32 child = node.child[slot];
        const bool is_used = slot < node.count && node.bounds[0][0][slot] <= node.bounds[1][0][slot];
        if (is_used && child >= 0) {
            const Node<T>& below = nodes[child];
            const Moments<T>& of = all[child];
            for (int i = 0; i < below.count; ++i) {
                if (!(below.bounds[0][0][i] <= below.bounds[1][0][i])) continue;
                double x[3];
                middle(below, i, x);
                const double n[3] = {of.normal[0][i], of.normal[1][i], of.normal[2][i]};
                add(n, x);
                for (int k = 0; k < 6; ++k) spread[k] += of.spread[k][i];
            }
        } else if (is_used) {
            const TriangleBlock<T>& block = blocks[-1 - child];
            for (int lane = 0; lane < kWidth && block.item[lane] >= 0; ++lane) {
                double a[3], ab[3], ac[3], n[3], x[3];
                for (int axis = 0; axis < 3; ++axis) {
                    a[axis] = block.corner[0][axis][lane];
                    ab[axis] = block.corner[1][axis][lane] - a[axis];
                    ac[axis] = block.corner[2][axis][lane] - a[axis];
                    x[axis] = a[axis] + (ab[axis] + ac[axis]) / 3;
                }
                for (int i = 0; i < 3; ++i) {
                    const int j = (i + 1) % 3, k = (i + 2) % 3;
                    n[i] = (ab[j] * ac[k] - ab[k] * ac[j]) / 2;
                }
                const double sum = n[0] + n[1] + n[2];
                if (sum - sum == 0) add(n, x);
            }
        }
        for (int i = 0; i < 3; ++i) moments.normal[i][slot] = T(normal[i]);
        for (int i = 0; i < 6; ++i) moments.spread[i][slot] = T(spread[i]);
    }
}

}  // namespace weft::devlib
