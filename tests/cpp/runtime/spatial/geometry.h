// Geometry in f64, one triangle after the other, for tests of traversals.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "runtime/spatial/meshes.h"

namespace weft::runtime::spatial {

using Vec = std::array<double, 3>;

inline Vec operator+(Vec a, Vec b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline Vec operator-(Vec a, Vec b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
inline Vec operator*(double s, Vec a) { return {s * a[0], s * a[1], s * a[2]}; }
inline Vec cross(Vec a, Vec b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline double dot(Vec a, Vec b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline double length(Vec a) { return std::sqrt(dot(a, a)); }

template <typename T>
Vec as_vec(const T* p) {
    return {static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2])};
}

using Triangle = std::array<Vec, 3>;

template <typename T>
std::vector<Triangle> triangles_of(const TestMesh<T>& mesh) {
    std::vector<Triangle> all;
    for (std::int64_t face = 0; face < mesh.faces(); ++face)
        all.push_back({as_vec(mesh.corner(face, 0)), as_vec(mesh.corner(face, 1)), as_vec(mesh.corner(face, 2))});
    return all;
}

template <typename T>
double largest_coordinate(const TestMesh<T>& mesh) {
    double largest = 0;
    for (const T x : mesh.points) largest = std::max(largest, std::abs(static_cast<double>(x)));
    return largest;
}

inline double distance(const Vec& p, const Triangle& t) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
        const Vec along = t[static_cast<std::size_t>((i + 1) % 3)] - t[static_cast<std::size_t>(i)];
        const Vec start = p - t[static_cast<std::size_t>(i)];
        const double size = dot(along, along), s = size > 0 ? std::clamp(dot(start, along) / size, 0.0, 1.0) : 0;
        least = std::min(least, length(start - s * along));
    }
    const Vec ab = t[1] - t[0], ac = t[2] - t[0], normal = cross(ab, ac), start = p - t[0];
    const double area = dot(normal, normal);
    const double v = dot(cross(start, ac), normal) / area, w = dot(cross(ab, start), normal) / area;
    if (v >= 0 && w >= 0 && v + w <= 1) least = std::min(least, std::abs(dot(start, normal)) / std::sqrt(area));
    return least;
}

inline double farthest(const Vec& p, const Triangle& t) {
    return std::max({length(p - t[0]), length(p - t[1]), length(p - t[2])});
}

inline double winding_number(const Vec& p, const std::vector<Triangle>& triangles) {
    double sum = 0;
    for (const Triangle& t : triangles) {
        const Vec a = t[0] - p, b = t[1] - p, c = t[2] - p;
        const double la = length(a), lb = length(b), lc = length(c);
        sum += 2 * std::atan2(dot(a, cross(b, c)), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb);
    }
    return sum / (4 * std::numbers::pi);
}

}  // namespace weft::runtime::spatial
