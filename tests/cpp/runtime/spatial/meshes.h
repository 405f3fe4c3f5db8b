// Meshes to try traversals on: every kind that is easy to get wrong.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/spatial/tree.h"

namespace weft::runtime::spatial {

template <typename T>
struct TestMesh {
    std::string name;
    std::vector<T> points;
    std::vector<std::int32_t> indices;
    bool is_closed = false;  // and does not intersect itself
    double size = 1, middle[3] = {0, 0, 0};

    std::int64_t faces() const { return static_cast<std::int64_t>(indices.size()) / 3; }
    Points<T> corners() const { return {reinterpret_cast<const std::byte*>(points.data())}; }
    const T* corner(std::int64_t face, int which) const {
        return &points[static_cast<std::size_t>(3 * indices[static_cast<std::size_t>(3 * face + which)])];
    }
};

using Random = std::mt19937_64;

inline double uniform(Random& random, double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
}

// A closed surface around the origin: a grid over longitudes and latitudes with one point at each pole.
template <typename T>
TestMesh<T> star(std::string name, int rings, int sides, const std::function<double(double, double)>& radius) {
    TestMesh<T> mesh{std::move(name), {}, {}, true};
    const auto add = [&](double theta, double phi) {
        const double r = radius(theta, phi);
        for (const double x :
             {r * std::sin(theta) * std::cos(phi), r * std::sin(theta) * std::sin(phi), r * std::cos(theta)})
            mesh.points.push_back(static_cast<T>(x));
    };
    add(0, 0);
    for (int i = 1; i < rings; ++i)
        for (int j = 0; j < sides; ++j) add(std::numbers::pi * i / rings, 2 * std::numbers::pi * j / sides);
    add(std::numbers::pi, 0);
    const auto at = [&](int i, int j) { return 1 + (i - 1) * sides + j % sides; };
    const std::int32_t last = 1 + (rings - 1) * sides;
    for (int j = 0; j < sides; ++j) {
        for (const std::int32_t corner : {0, at(1, j), at(1, j + 1)}) mesh.indices.push_back(corner);
        for (const std::int32_t corner : {last, at(rings - 1, j + 1), at(rings - 1, j)}) mesh.indices.push_back(corner);
        for (int i = 1; i + 1 < rings; ++i)
            for (const std::int32_t corner :
                 {at(i, j), at(i + 1, j), at(i, j + 1), at(i, j + 1), at(i + 1, j), at(i + 1, j + 1)})
                mesh.indices.push_back(corner);
    }
    return mesh;
}

template <typename T>
TestMesh<T> tetrahedron() {
    return {"tetrahedron", {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3}, true};
}

template <typename T>
TestMesh<T> cube() {
    TestMesh<T> mesh{"cube", {}, {}, true};
    for (int i = 0; i < 8; ++i)
        for (int axis = 0; axis < 3; ++axis) mesh.points.push_back(static_cast<T>(i >> axis & 1) - T(0.5));
    mesh.indices = {0, 2, 1, 1, 2, 3, 4, 5, 6, 5, 7, 6, 0, 1, 4, 1, 5, 4,
                    2, 6, 3, 3, 6, 7, 0, 4, 2, 2, 4, 6, 1, 3, 5, 3, 7, 5};
    return mesh;
}

// Triangles of random corners near random places.
template <typename T>
TestMesh<T> soup(std::string name, int count, double extent, const double (&stretch)[3], std::uint64_t seed) {
    Random random(seed);
    TestMesh<T> mesh{std::move(name), {}, {}};
    for (int i = 0; i < count; ++i) {
        double place[3];
        for (double& x : place) x = uniform(random, -1, 1);
        for (int corner = 0; corner < 3; ++corner)
            for (int axis = 0; axis < 3; ++axis)
                mesh.points.push_back(static_cast<T>(place[axis] + extent * stretch[axis] * uniform(random, -1, 1)));
    }
    for (int i = 0; i < 3 * count; ++i) mesh.indices.push_back(i);
    return mesh;
}

template <typename T>
TestMesh<T> moved(TestMesh<T> mesh, std::string name, double scale, double x, double y, double z) {
    mesh.name = std::move(name);
    const double by[3] = {x, y, z};
    for (std::size_t i = 0; i < mesh.points.size(); ++i)
        mesh.points[i] = static_cast<T>(scale * static_cast<double>(mesh.points[i]) + by[i % 3]);
    mesh.size *= scale;
    for (int axis = 0; axis < 3; ++axis) mesh.middle[axis] += by[axis];
    return mesh;
}

template <typename T>
TestMesh<T> joined(std::string name, std::vector<TestMesh<T>> parts) {
    TestMesh<T> mesh{std::move(name), {}, {}};
    for (const TestMesh<T>& part : parts) {
        const auto first = static_cast<std::int32_t>(mesh.points.size() / 3);
        mesh.points.insert(mesh.points.end(), part.points.begin(), part.points.end());
        for (const std::int32_t corner : part.indices) mesh.indices.push_back(first + corner);
    }
    return mesh;
}

template <typename T>
TestMesh<T> bumpy(int rings) {
    return star<T>("bumpy", rings, 2 * rings, [](double theta, double phi) {
        return 1 + 0.3 * std::sin(5 * theta) * std::sin(theta) * std::cos(4 * phi);
    });
}

template <typename T>
std::vector<TestMesh<T>> test_meshes() {
    std::vector<TestMesh<T>> all;
    const auto sphere = [](int rings) {
        return star<T>("sphere", rings, 2 * rings, [](double, double) { return 1.0; });
    };
    all.push_back(tetrahedron<T>());
    all.push_back(cube<T>());
    all.push_back(sphere(12));
    all.push_back(bumpy<T>(20));
    all.push_back(star<T>("spiky", 9, 17, [](double theta, double phi) {
        return std::fmod(theta * 1013 + phi * 577, 1.0) < 0.5 ? 0.2 : 1.0;
    }));
    all.push_back(soup<T>("random", 700, 0.3, {1, 1, 1}, 1));
    all.push_back(soup<T>("random large", 60, 3, {1, 1, 1}, 2));
    all.push_back(soup<T>("thin", 500, 0.8, {1, 1e-4, 1e-4}, 3));
    all.push_back(soup<T>("flat", 500, 0.3, {1, 1, 0}, 4));
    {
        TestMesh<T> degenerate = soup<T>("degenerate", 300, 0.4, {1, 1, 1}, 5);
        for (std::size_t i = 0; i < degenerate.indices.size(); i += 9)
            degenerate.indices[i] = degenerate.indices[i + 1];
        for (std::size_t i = 0; i < degenerate.indices.size(); i += 27)
            degenerate.indices[i + 2] = degenerate.indices[i + 1];
        all.push_back(degenerate);
    }
    {
        TestMesh<T> open = sphere(10);
        open.name = "open", open.is_closed = false;
        open.indices.resize(open.indices.size() / 2 / 3 * 3);
        all.push_back(open);
    }
    all.push_back(joined<T>("duplicates", {cube<T>(), cube<T>(), cube<T>()}));
    all.push_back(joined<T>("intersecting", {sphere(8), moved(sphere(8), "", 1.0, 0.7, 0.1, 0.2)}));
    all.push_back(moved(bumpy<T>(10), "tiny", 1e-6, 0, 0, 0));
    all.push_back(moved(bumpy<T>(10), "huge", 1e6, 0, 0, 0));
    all.push_back(moved(bumpy<T>(10), "far", 1.0, 1000, -2000, 500));
    return all;
}

}  // namespace weft::runtime::spatial
