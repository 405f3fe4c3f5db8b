// Closest and furthest points and sides of meshes, at every level of processors: compared with all triangles, one by
// one, in f64, and with winding numbers.
#include <gtest/gtest.h>

#include "runtime/cpu/library.h"
#include "runtime/spatial/geometry.h"

namespace weft::runtime::spatial {
namespace {

template <typename T>
class Asked {
public:
    explicit Asked(const TestMesh<T>& mesh, const TreeOptions& options = {})
        : tree_(mesh.corners(), mesh.indices, options) {
        descriptor_.scalar_bytes = sizeof(T);
        descriptor_.tree = tree_.tree();
    }
    // The face, and the side if the function gives one.
    std::pair<std::int32_t, std::int32_t> ask(const char* what, int level, const T (&point)[3], T limit) const {
        const std::string name = std::string("weft_lib_mesh_point_") + what + (sizeof(T) == 4 ? "_f32" : "_f64");
        auto* const function =
            reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const T*, const T*, std::uint64_t,
                                      std::int32_t)>(find_library_function(name, level));
        const auto mesh = reinterpret_cast<std::uint64_t>(&descriptor_);
        std::int32_t result[2] = {-2, 0};
        function(result, &mesh, point, &limit, 1, 1);
        return {result[0], result[1]};
    }

private:
    TriangleTree<T> tree_;
    devlib::MeshDescriptor<T> descriptor_;
};

template <typename T, typename Check>
void with_points(const TestMesh<T>& mesh, int count, const Check& check) {
    Random random(23);
    for (int i = 0; i < count; ++i) {
        T point[3];
        const double extent = i % 3 == 0 ? 6 : 1.2;
        const auto face = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(mesh.faces()));
        for (int axis = 0; axis < 3; ++axis) {
            point[axis] = static_cast<T>(mesh.middle[axis] + mesh.size * uniform(random, -extent, extent));
            // Near a corner, or exactly on it.
            if (i % 4 == 1)
                point[axis] = static_cast<T>(mesh.corner(face, 0)[axis] + 0.05 * mesh.size * uniform(random, -1, 1));
            if (i % 16 == 2) point[axis] = mesh.corner(face, 0)[axis];
        }
        check(point);
    }
}

template <typename T>
class MeshPoints : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MeshPoints, Types);

TYPED_TEST(MeshPoints, are_as_close_as_all_triangles_one_by_one_say) {
    using T = TypeParam;
    for (const TestMesh<T>& mesh : test_meshes<T>()) {
        SCOPED_TRACE(mesh.name);
        const std::vector<Triangle> triangles = triangles_of(mesh);
        const double ulp = largest_coordinate(mesh) * static_cast<double>(std::numeric_limits<T>::epsilon());
        const double relative = sizeof(T) == 4 ? 1e-5 : 1e-12;
        const Asked<T> asked(mesh), other(mesh, {TreeMethod::median, 3});
        with_points(mesh, 300, [&](const T(&point)[3]) {
            double least = std::numeric_limits<double>::infinity(), most = 0;
            for (const Triangle& triangle : triangles) {
                least = std::min(least, distance(as_vec(point), triangle));
                most = std::max(most, farthest(as_vec(point), triangle));
            }
            const auto [first, side] = asked.ask("side", 0, point, std::numeric_limits<T>::infinity());
            const std::int32_t far = asked.ask("furthest", 0, point, T(0)).first;
            ASSERT_GE(first, 0);
            ASSERT_GE(far, 0);
            ASSERT_LE(distance(as_vec(point), triangles[static_cast<std::size_t>(first)]),
                      least * (1 + relative) + 4 * ulp);
            ASSERT_GE(farthest(as_vec(point), triangles[static_cast<std::size_t>(far)]), most * (1 - relative));
            for (int level = 0; level <= best_library_level(); ++level) {
                ASSERT_EQ(asked.ask("side", level, point, std::numeric_limits<T>::infinity()), std::pair(first, side));
                ASSERT_EQ(asked.ask("closest", level, point, std::numeric_limits<T>::infinity()).first, first);
                ASSERT_EQ(asked.ask("furthest", level, point, T(-1)).first, far);
                const std::int32_t same = other.ask("closest", level, point, std::numeric_limits<T>::infinity()).first;
                ASSERT_LE(distance(as_vec(point), triangles[static_cast<std::size_t>(same)]),
                          least * (1 + relative) + 4 * ulp);
                // Nothing beyond the limits.
                const auto within = static_cast<T>(least + 1e-3 * least + 8 * ulp),
                           beyond = static_cast<T>(least - 1e-3 * least - 8 * ulp);
                ASSERT_EQ(asked.ask("closest", level, point, within).first, first);
                ASSERT_EQ(asked.ask("closest", level, point, beyond).first, -1);
                ASSERT_EQ(asked.ask("furthest", level, point, static_cast<T>(0.999 * most)).first, far);
                ASSERT_EQ(asked.ask("furthest", level, point, static_cast<T>(1.001 * most)).first, -1);
            }
        });
    }
}

// Each face with points of its own, in a random order.
template <typename T>
TestMesh<T> cut_apart(const TestMesh<T>& mesh) {
    TestMesh<T> cut = mesh;
    cut.name += ", cut apart";
    cut.points.clear();
    for (const std::int32_t corner : mesh.indices)
        for (int axis = 0; axis < 3; ++axis)
            cut.points.push_back(mesh.points[static_cast<std::size_t>(3 * corner + axis)]);
    for (std::size_t i = 0; i < cut.indices.size(); ++i) cut.indices[i] = static_cast<std::int32_t>(i);
    return cut;
}

TYPED_TEST(MeshPoints, are_on_the_side_that_the_winding_number_says) {
    using T = TypeParam;
    int inside = 0, outside = 0;
    for (const TestMesh<T>& mesh : test_meshes<T>()) {
        if (!mesh.is_closed) continue;
        SCOPED_TRACE(mesh.name);
        const std::vector<Triangle> triangles = triangles_of(mesh);
        const Asked<T> asked(mesh), apart(cut_apart(mesh));
        const double band =
            1e-5 * mesh.size + 8 * largest_coordinate(mesh) * static_cast<double>(std::numeric_limits<T>::epsilon());
        with_points(mesh, 500, [&](const T(&point)[3]) {
            double least = std::numeric_limits<double>::infinity();
            for (const Triangle& triangle : triangles) least = std::min(least, distance(as_vec(point), triangle));
            if (least < band) return;
            const int expected = winding_number(as_vec(point), triangles) > 0.5 ? -1 : 1;
            ++(expected < 0 ? inside : outside);
            for (int level = 0; level <= best_library_level(); ++level) {
                ASSERT_EQ(asked.ask("side", level, point, std::numeric_limits<T>::infinity()).second, expected);
                ASSERT_EQ(apart.ask("side", level, point, std::numeric_limits<T>::infinity()).second, expected);
            }
        });
    }
    EXPECT_GT(inside, 200);
    EXPECT_GT(outside, 200);
}

TYPED_TEST(MeshPoints, that_are_no_points_find_nothing) {
    using T = TypeParam;
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN(), kInfinity = std::numeric_limits<T>::infinity();
    const Asked<T> asked(cube<T>());
    for (int level = 0; level <= best_library_level(); ++level)
        for (const char* what : {"closest", "side"}) {
            for (const T bad : {kNan, kInfinity, -kInfinity})
                EXPECT_EQ(asked.ask(what, level, {0, bad, 0}, kInfinity).first, -1);
            for (const T limit : {kNan, T(0), T(-1)}) EXPECT_EQ(asked.ask(what, level, {2, 0, 0}, limit).first, -1);
        }
}

}  // namespace
}  // namespace weft::runtime::spatial
