// Rays through meshes, at every level of processors: compared with all triangles, one by one, in f64.
#include <gtest/gtest.h>

#include <array>

#include "runtime/cpu/library.h"
#include "runtime/spatial/geometry.h"

namespace weft::runtime::spatial {
namespace {

// A descriptor of a mesh, and the functions for it at one level.
template <typename T>
class Traced {
public:
    Traced(const TestMesh<T>& mesh, const TreeOptions& options) : tree_(mesh.corners(), mesh.indices, options) {
        descriptor_.scalar_bytes = sizeof(T);
        descriptor_.tree = tree_.tree();
    }

    std::int32_t nearest(int level, const T (&start)[3], const T (&direction)[3], T limit) const {
        return call("nearest", level, start, direction, &limit);
    }
    std::int32_t any(int level, const T (&start)[3], const T (&direction)[3], T limit) const {
        return call("any", level, start, direction, &limit);
    }
    std::int32_t count(int level, const T (&start)[3], const T (&direction)[3]) const {
        return call("count", level, start, direction, nullptr);
    }

    // Of many lanes at once, x y z after each other.
    std::vector<std::int32_t> together(const char* what, int level, const std::vector<T>& starts,
                                       const std::vector<T>& directions, const std::vector<T>& limits,
                                       std::uint64_t mask) const {
        const std::string name = std::string("weft_lib_mesh_ray_") + what + (sizeof(T) == 4 ? "_f32" : "_f64");
        auto* const function = reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const T*, const T*,
                                                         const T*, const std::int32_t*, std::uint64_t, std::int32_t)>(
            find_library_function(name, level));
        const std::size_t width = limits.size();
        // Lanes that are off have no object and no root.
        std::vector<std::uint64_t> meshes(width, 1);
        std::vector<std::int32_t> roots(width, 1 << 30), result(width, -2);
        for (std::size_t lane = 0; lane < width; ++lane)
            if (mask >> lane & 1) meshes[lane] = reinterpret_cast<std::uint64_t>(&descriptor_), roots[lane] = -1;
        function(result.data(), meshes.data(), starts.data(), directions.data(), limits.data(), roots.data(), mask,
                 static_cast<std::int32_t>(width));
        return result;
    }

private:
    std::int32_t call(const char* what, int level, const T* start, const T* direction, const T* limit) const {
        const std::string name = std::string("weft_lib_mesh_ray_") + what + (sizeof(T) == 4 ? "_f32" : "_f64");
        void* const function = find_library_function(name, level);
        const auto mesh = reinterpret_cast<std::uint64_t>(&descriptor_);
        const std::int32_t root = -1;
        std::int32_t result = -2;
        if (limit != nullptr)
            reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const T*, const T*, const T*,
                                      const std::int32_t*, std::uint64_t, std::int32_t)>(function)(
                &result, &mesh, start, direction, limit, &root, 1, 1);
        else
            reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const T*, const T*, const std::int32_t*,
                                      std::uint64_t, std::int32_t)>(function)(&result, &mesh, start, direction, &root,
                                                                              1, 1);
        return result;
    }

    TriangleTree<T> tree_;
    devlib::MeshDescriptor<T> descriptor_;
};

// How a ray meets one triangle: certainly, certainly not, or so close to its border that rounding decides.
struct Meeting {
    enum Kind { missed, unsure, hit } kind;
    double distance;
};

// `error`: how far corners may be from where they are said to be.
Meeting meet(const Vec& start, const Vec& direction, const Triangle& corners, double error) {
    const Vec a = corners[0] - start, b = corners[1] - start, c = corners[2] - start;
    const Vec normal = cross(b - a, c - a);
    const double size = length(direction), slope = dot(normal, direction);
    const double area = length(normal);
    const double distance = slope == 0 ? 0 : dot(normal, a) / slope;
    // From the ray to each edge, as seen along the ray.
    double inside = 0, outside = 0;
    bool all_front = true, all_back = true, sure = true;
    for (const auto& [p, q] : {std::pair(a, b), std::pair(b, c), std::pair(c, a)}) {
        const double side = dot(cross(p, q), direction) / size;
        const double slack = 4 * error * (length(p) + length(q) + error);
        if (std::abs(side) <= slack) sure = false;
        if (side < -slack) all_front = false;
        if (side > slack) all_back = false;
        inside = std::max(inside, side), outside = std::min(outside, side);
    }
    if (!all_front && !all_back) return {Meeting::missed, 0};
    // Seen from its edge a triangle has no certain distance.
    const double flatness = std::abs(slope) / (area * size + 1e-300);
    if (!sure || area == 0 || flatness < 1e-3) return {Meeting::unsure, distance};
    if (std::abs(distance) * size * flatness < 8 * error) return {Meeting::unsure, distance};
    return {distance > 0 ? Meeting::hit : Meeting::missed, distance};
}

template <typename T>
class Rays : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Rays, Types);

template <typename T, typename Check>
void with_rays(const TestMesh<T>& mesh, int count, const Check& check) {
    Random random(17);
    for (int i = 0; i < count; ++i) {
        T start[3], direction[3];
        const double length = std::pow(10.0, uniform(random, -3, 3));
        for (int axis = 0; axis < 3; ++axis) {
            start[axis] = static_cast<T>(mesh.middle[axis] + mesh.size * uniform(random, -2, 2));
            direction[axis] = static_cast<T>(length * uniform(random, -1, 1));
            if (i % 5 == axis) direction[axis] = i % 2 ? T(0) : -T(0);
            if (i % 7 == axis) direction[axis] = static_cast<T>(1e-12 * length);
        }
        if (i % 3 == 0)  // towards the mesh
            for (int axis = 0; axis < 3; ++axis)
                direction[axis] = static_cast<T>(
                    length *
                    (mesh.middle[axis] + mesh.size * uniform(random, -0.5, 0.5) - static_cast<double>(start[axis])) /
                    mesh.size);
        check(start, direction);
    }
}

TYPED_TEST(Rays, hit_what_all_triangles_one_by_one_say) {
    using T = TypeParam;
    int sure_hits = 0;
    for (const TestMesh<T>& mesh : test_meshes<T>()) {
        SCOPED_TRACE(mesh.name);
        const double largest = largest_coordinate(mesh);
        const std::vector<Triangle> triangles = triangles_of(mesh);
        const Traced<T> traced(mesh, {});
        with_rays(mesh, 400, [&](const T(&start)[3], const T(&direction)[3]) {
            const double error = 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) * (largest + 4 * mesh.size);
            const double speed = length(as_vec(direction));
            if (speed == 0) return;
            double nearest = std::numeric_limits<double>::infinity();
            int hits = 0, unsure = 0;
            std::vector<Meeting> meetings;
            for (std::int64_t face = 0; face < mesh.faces(); ++face) {
                meetings.push_back(
                    meet(as_vec(start), as_vec(direction), triangles[static_cast<std::size_t>(face)], error));
                if (meetings.back().kind == Meeting::hit) nearest = std::min(nearest, meetings.back().distance), ++hits;
                if (meetings.back().kind == Meeting::unsure) ++unsure;
            }
            const double slack = 1e4 * error / speed;
            for (int level = 0; level <= best_library_level(); ++level) {
                const std::int32_t face = traced.nearest(level, start, direction, std::numeric_limits<T>::infinity());
                if (face < 0) {
                    ASSERT_EQ(hits, 0);
                } else {
                    ASSERT_LT(face, mesh.faces());
                    const Meeting& met = meetings[static_cast<std::size_t>(face)];
                    ASSERT_NE(met.kind, Meeting::missed);
                    if (met.kind == Meeting::hit) {
                        ++sure_hits;
                        ASSERT_LE(met.distance, nearest + slack);
                    }
                }
                ASSERT_EQ(traced.any(level, start, direction, std::numeric_limits<T>::infinity()) >= 0, face >= 0);
                if (hits > 0) {
                    ASSERT_EQ(traced.nearest(level, start, direction, static_cast<T>(0.5 * (nearest - slack))) >= 0 &&
                                  unsure == 0,
                              false);
                    ASSERT_GE(traced.any(level, start, direction, static_cast<T>(nearest + slack)), 0);
                }
                const int count = traced.count(level, start, direction);
                ASSERT_GE(count, hits);
                ASSERT_LE(count, hits + unsure);
            }
        });
    }
    EXPECT_GT(sure_hits, 1000);
}

TYPED_TEST(Rays, do_not_slip_through_edges_and_corners_of_closed_meshes) {
    using T = TypeParam;
    Random random(3);
    for (const TestMesh<T>& mesh : test_meshes<T>()) {
        if (!mesh.is_closed) continue;
        SCOPED_TRACE(mesh.name);
        const Traced<T> traced(mesh, {});
        const double depth = mesh.name == "tetrahedron" ? 0.2 : 0.0;
        for (int i = 0; i < 3000; ++i) {
            T inside[3], outside[3], inwards[3], outwards[3];
            const auto face = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(mesh.faces()));
            const T *const a = mesh.corner(face, 0), *const b = mesh.corner(face, 1);
            const double along = i % 3 == 0 ? 0 : uniform(random, 0, 1);
            for (int axis = 0; axis < 3; ++axis) {
                inside[axis] = static_cast<T>(mesh.middle[axis] + mesh.size * (depth + uniform(random, -0.02, 0.02)));
                const double target = a[axis] + along * (b[axis] - a[axis]);
                outwards[axis] = static_cast<T>(target) - inside[axis];
                outside[axis] = static_cast<T>(mesh.middle[axis] + mesh.size * uniform(random, 3, 5));
                inwards[axis] = static_cast<T>(target) - outside[axis];
            }
            for (int level = 0; level <= best_library_level(); ++level) {
                ASSERT_GE(traced.nearest(level, inside, outwards, std::numeric_limits<T>::infinity()), 0) << i;
                ASSERT_EQ(traced.count(level, inside, outwards) % 2, 1) << i;
                ASSERT_EQ(traced.count(level, outside, inwards) % 2, 0) << i;
            }
        }
    }
}

TYPED_TEST(Rays, find_the_same_in_trees_of_every_method_and_leaf_size) {
    using T = TypeParam;
    for (const TestMesh<T>& mesh : test_meshes<T>()) {
        SCOPED_TRACE(mesh.name);
        const Traced<T> reference(mesh, {});
        for (const TreeMethod method : {TreeMethod::sah, TreeMethod::linear, TreeMethod::median})
            for (const int leaf_size : {1, 3, 8, 100}) {
                const Traced<T> traced(mesh, {method, leaf_size});
                const int level = best_library_level();
                with_rays(mesh, 60, [&](const T(&start)[3], const T(&direction)[3]) {
                    const T limit = std::numeric_limits<T>::infinity();
                    ASSERT_EQ(traced.nearest(level, start, direction, limit),
                              reference.nearest(level, start, direction, limit));
                    ASSERT_EQ(traced.count(level, start, direction), reference.count(level, start, direction));
                });
            }
    }
}

TYPED_TEST(Rays, of_neighbouring_lanes_hit_what_they_hit_alone) {
    using T = TypeParam;
    Random random(31);
    int hits = 0, misses = 0;
    for (const TestMesh<T>& mesh : test_meshes<T>()) {
        SCOPED_TRACE(mesh.name);
        const Traced<T> traced(mesh, {});
        for (int i = 0; i < 400; ++i) {
            const std::size_t width = std::array<std::size_t, 7>{1, 4, 8, 16, 24, 32, 64}[random() % 7];
            // From one place or from places beside each other, into directions that are nearly the same or are not.
            const double origins = std::array<double, 4>{0, 0.01, 0.015, 0.5}[random() % 4] * mesh.size;
            const double directions = std::array<double, 5>{0, 1e-4, 0.02, 0.05, 1}[random() % 5];
            Vec start, towards;
            for (std::size_t axis = 0; axis < 3; ++axis) {
                start[axis] = mesh.middle[axis] + mesh.size * uniform(random, -2, 2);
                towards[axis] = mesh.middle[axis] + mesh.size * uniform(random, -0.7, 0.7) - start[axis];
                if (random() % 4 == 0) towards[axis] = 0;
            }
            std::vector<T> starts(3 * width), ways(3 * width), limits(width);
            for (std::size_t lane = 0; lane < width; ++lane) {
                limits[lane] =
                    random() % 4 ? std::numeric_limits<T>::infinity() : static_cast<T>(uniform(random, 0, 2));
                for (std::size_t axis = 0; axis < 3; ++axis) {
                    starts[axis * width + lane] = static_cast<T>(start[axis] + origins * uniform(random, -1, 1));
                    ways[axis * width + lane] =
                        static_cast<T>(towards[axis] + directions * length(towards) * uniform(random, -1, 1));
                }
            }
            const std::uint64_t all = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
            const std::uint64_t mask = random() % 2 ? all : all & random();
            for (std::size_t lane = 0; lane < width; ++lane)
                if (!(mask >> lane & 1)) starts[lane] = limits[lane] = std::numeric_limits<T>::quiet_NaN();
            for (int level = 0; level <= best_library_level(); ++level) {
                const auto nearest = traced.together("nearest", level, starts, ways, limits, mask);
                const auto any = traced.together("any", level, starts, ways, limits, mask);
                for (std::size_t lane = 0; lane < width; ++lane) {
                    if (!(mask >> lane & 1)) {
                        ASSERT_EQ(nearest[lane], -2);
                        continue;
                    }
                    const T from[3] = {starts[lane], starts[width + lane], starts[2 * width + lane]};
                    const T way[3] = {ways[lane], ways[width + lane], ways[2 * width + lane]};
                    ASSERT_EQ(nearest[lane], traced.nearest(level, from, way, limits[lane]));
                    ASSERT_EQ(any[lane] >= 0, nearest[lane] >= 0);
                    ++(nearest[lane] >= 0 ? hits : misses);
                }
            }
        }
    }
    EXPECT_GT(hits, 3000);
    EXPECT_GT(misses, 3000);
}

TYPED_TEST(Rays, that_are_no_rays_hit_nothing) {
    using T = TypeParam;
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN(), kInfinity = std::numeric_limits<T>::infinity();
    const Traced<T> traced(cube<T>(), {});
    for (int level = 0; level <= best_library_level(); ++level) {
        for (const T bad : {kNan, kInfinity, -kInfinity})
            for (int axis = 0; axis < 3; ++axis) {
                T start[3] = {0, 0, 0}, direction[3] = {1, 2, 3};
                direction[axis] = bad;
                EXPECT_EQ(traced.nearest(level, start, direction, kInfinity), -1);
                EXPECT_EQ(traced.count(level, start, direction), 0);
                direction[axis] = 1, start[axis] = bad;
                EXPECT_EQ(traced.any(level, start, direction, kInfinity), -1);
            }
        EXPECT_EQ(traced.nearest(level, {0, 0, 0}, {0, 0, 0}, kInfinity), -1);
        EXPECT_EQ(traced.nearest(level, {0, 0, 0}, {1, 2, 3}, kNan), -1);
        EXPECT_EQ(traced.nearest(level, {0, 0, 0}, {1, 2, 3}, T(-1)), -1);
        const T tiny = std::numeric_limits<T>::denorm_min();
        EXPECT_GE(traced.nearest(level, {0, 0, 0}, {tiny, 0, 0}, kInfinity), 0);
        EXPECT_GE(traced.nearest(level, {0, 0, 0}, {0, std::numeric_limits<T>::max() / 4, 0}, kInfinity), 0);
    }
}

TYPED_TEST(Rays, do_not_meet_triangles_that_are_not_finite_until_they_are) {
    using T = TypeParam;
    TestMesh<T> mesh = soup<T>("", 200, 0.3, {1, 1, 1}, 9);
    const std::vector<T> finite = mesh.points;
    for (std::size_t i = 0; i < mesh.points.size(); i += 45)
        mesh.points[i] = i % 2 ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
    TriangleTree<T> tree(mesh.corners(), mesh.indices, {});
    devlib::MeshDescriptor<T> descriptor;
    TestMesh<T> without = mesh;
    without.points = finite;
    for (std::size_t face = 0; face < 200; ++face)
        if (face % 5 == 0) without.indices[3 * face + 1] = without.indices[3 * face + 2] = without.indices[3 * face];
    const Traced<T> traced(mesh, {}), expected(without, {});
    int hits = 0;
    with_rays(mesh, 300, [&](const T(&start)[3], const T(&direction)[3]) {
        const int level = best_library_level();
        const std::int32_t face = traced.nearest(level, start, direction, std::numeric_limits<T>::infinity());
        EXPECT_EQ(face, expected.nearest(level, start, direction, std::numeric_limits<T>::infinity()));
        hits += face >= 0;
    });
    EXPECT_GT(hits, 20);
}

}  // namespace
}  // namespace weft::runtime::spatial
