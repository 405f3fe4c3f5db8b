// The side of a line or a plane on which a point is, exactly.
//
// The sign of a determinant is that of its value in f64 if the value exceeds all rounding errors. Otherwise the
// determinant is computed exactly, as a sum of numbers that do not overlap (J. R. Shewchuk, Adaptive Precision
// Floating-Point Arithmetic and Fast Robust Geometric Predicates, 1997). Precondition: coordinates are finite, and
// products of three of them stay in the range of f64.
#pragma once

#include "devlib/spatial/simd.h"

namespace weft::devlib {

using Point = Vec<double>;

// Two numbers whose sum is the exact result.
struct Exact {
    double parts[2];  // the larger first
};
inline Exact exact_sum(double a, double b) {
    const double sum = a + b, of_b = sum - a;
    return {sum, (a - (sum - of_b)) + (b - of_b)};
}
inline Exact exact_difference(double a, double b) { return exact_sum(a, -b); }
inline Exact exact_product(double a, double b) {
    const double product = a * b;
    return {product, __builtin_fma(a, b, -product)};
}

// An exact sum of at most kMost products of two or three numbers.
template <int kMost>
class ExactSum {
public:
    void add(double value) {
        int kept = 0;
        for (int i = 0; i < size_; ++i) {
            const Exact sum = exact_sum(value, terms_[i]);
            value = sum.parts[0];
            if (sum.parts[1] != 0) terms_[kept++] = sum.parts[1];
        }
        if (value != 0) terms_[kept++] = value;
        size_ = kept;
    }
    void add_product(double a, double b) {
        if (a == 0 || b == 0) return;
        const Exact product = exact_product(a, b);
        add(product.parts[1]), add(product.parts[0]);
    }
    void add_product(double a, double b, double c) {
        if (a == 0 || b == 0 || c == 0) return;
        const Exact product = exact_product(a, b);
        add_product(product.parts[1], c), add_product(product.parts[0], c);
    }
    void add_product(const Exact& a, const Exact& b, double sign) {
        for (const double x : a.parts)
            for (const double y : b.parts) add_product(sign * x, y);
    }
    void add_product(const Exact& a, const Exact& b, const Exact& c, double sign) {
        for (const double x : a.parts)
            for (const double y : b.parts)
                for (const double z : c.parts) add_product(sign * x, y, z);
    }
    int sign() const { return size_ == 0 ? 0 : terms_[size_ - 1] > 0 ? 1 : -1; }

private:
    double terms_[kMost];  // the last is the largest
    int size_ = 0;
};

inline int sign_of(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

// Orientation of a, b and c in the plane of the axes x and y: counter-clockwise (1), clockwise (-1), or collinear (0).
inline int turn(const Point& a, const Point& b, const Point& c, int x, int y) {
    const double first = (b[x] - a[x]) * (c[y] - a[y]), second = (b[y] - a[y]) * (c[x] - a[x]);
    const double found = first - second, bound = 4 * Limits<double>::kEpsilon * (absolute(first) + absolute(second));
    if (found > bound || found < -bound) return sign_of(found);
    ExactSum<16> sum;
    sum.add_product(exact_difference(b[x], a[x]), exact_difference(c[y], a[y]), 1);
    sum.add_product(exact_difference(b[y], a[y]), exact_difference(c[x], a[x]), -1);
    return sum.sign();
}

// The sign of the volume of a, b, c and d: 0 if they are coplanar. Exchanging two neighbours changes it.
inline int side_of_plane(const Point& a, const Point& b, const Point& c, const Point& d) {
    const Point u = a - d, v = b - d, w = c - d;
    double found = 0, size = 0;
    for (int x = 0; x < 3; ++x) {
        const int y = (x + 1) % 3, z = (x + 2) % 3;
        found += u[x] * (v[y] * w[z] - v[z] * w[y]);
        size += absolute(u[x]) * (absolute(v[y] * w[z]) + absolute(v[z] * w[y]));
    }
    const double bound = 8 * Limits<double>::kEpsilon * size;
    if (found > bound || found < -bound) return sign_of(found);
    ExactSum<192> sum;
    Exact exact[3][3];
    for (int x = 0; x < 3; ++x) {
        exact[0][x] = exact_difference(a[x], d[x]);
        exact[1][x] = exact_difference(b[x], d[x]);
        exact[2][x] = exact_difference(c[x], d[x]);
    }
    for (int x = 0; x < 3; ++x) {
        const int y = (x + 1) % 3, z = (x + 2) % 3;
        sum.add_product(exact[0][x], exact[1][y], exact[2][z], 1);
        sum.add_product(exact[0][x], exact[1][z], exact[2][y], -1);
    }
    return sum.sign();
}

}  // namespace weft::devlib
