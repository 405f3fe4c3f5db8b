// Winding numbers and parities, at every level of processors: compared with the sum of all solid angles in f64.
#include <gtest/gtest.h>

#include "runtime/cpu/library.h"
#include "runtime/spatial/geometry.h"

namespace weft::runtime::spatial {
namespace {

template <typename T>
class Asked {
public:
    explicit Asked(const TestMesh<T>& mesh, bool with_moments = true)
        : tree_(mesh.corners(), mesh.indices, {}, {}, with_moments) {
        descriptor_.scalar_bytes = sizeof(T);
        descriptor_.tree = tree_.tree();
    }
    T winding(int level, const T (&point)[3], T accuracy) const {
        auto* const function =
            reinterpret_cast<void (*)(T*, const std::uint64_t*, const T*, const T*, std::uint64_t, int)>(
                find_library_function(sizeof(T) == 4 ? "weft_lib_mesh_winding_f32" : "weft_lib_mesh_winding_f64",
                                      level));
        const auto mesh = reinterpret_cast<std::uint64_t>(&descriptor_);
        T result = 7;
        function(&result, &mesh, point, &accuracy, 1, 1);
        return result;
    }
    int parity(int level, const T (&point)[3], std::int32_t samples, T scale) const {
        auto* const function = reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const T*,
                                                         const std::int32_t*, const T*, std::uint64_t, int)>(
            find_library_function(sizeof(T) == 4 ? "weft_lib_mesh_parity_f32" : "weft_lib_mesh_parity_f64", level));
        const auto mesh = reinterpret_cast<std::uint64_t>(&descriptor_);
        std::int32_t result = 7;
        function(&result, &mesh, point, &samples, &scale, 1, 1);
        return result;
    }
    int side_by_axes(int level, const T (&point)[3]) const {
        auto* const function =
            reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const T*, std::uint64_t, int)>(
                find_library_function(sizeof(T) == 4 ? "weft_lib_mesh_axes_f32" : "weft_lib_mesh_axes_f64", level));
        const auto mesh = reinterpret_cast<std::uint64_t>(&descriptor_);
        std::int32_t result = 7;
        function(&result, &mesh, point, 1, 1);
        return result;
    }
    void refit(const TestMesh<T>& mesh) { tree_.refit(mesh.corners()); }

private:
    TriangleTree<T> tree_;
    devlib::MeshDescriptor<T> descriptor_;
};

// check(point, distance from the mesh, winding number)
template <typename T, typename Check>
void with_places(const TestMesh<T>& mesh, int count, const Check& check) {
    Random random(29);
    const std::vector<Triangle> triangles = triangles_of(mesh);
    for (int i = 0; i < count; ++i) {
        T point[3];
        const auto face = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(mesh.faces()));
        for (int axis = 0; axis < 3; ++axis) {
            point[axis] = static_cast<T>(mesh.middle[axis] + mesh.size * uniform(random, -1.2, 1.2));
            if (i % 2)
                point[axis] = static_cast<T>(mesh.corner(face, 0)[axis] + 0.02 * mesh.size * uniform(random, -1, 1));
        }
        double least = std::numeric_limits<double>::infinity();
        for (const Triangle& triangle : triangles) least = std::min(least, distance(as_vec(point), triangle));
        check(point, least / mesh.size, winding_number(as_vec(point), triangles));
    }
}

template <typename T>
class Inside : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Inside, Types);

TYPED_TEST(Inside, winding_numbers_are_near_the_sum_of_all_angles) {
    using T = TypeParam;
    double errors[2] = {0, 0};
    for (const TestMesh<T>& mesh : test_meshes<T>()) {
        SCOPED_TRACE(mesh.name);
        const double ulp =
            largest_coordinate(mesh) / mesh.size * static_cast<double>(std::numeric_limits<T>::epsilon());
        const Asked<T> moments(mesh), slow(mesh, false);
        with_places(mesh, 200, [&](const T(&point)[3], double distance, double expected) {
            if (distance < 1e-5 + 100 * ulp) return;
            for (int level = 0; level <= best_library_level(); ++level) {
                const double angles = 1e-4 + 4000 * ulp;
                ASSERT_NEAR(slow.winding(level, point, T(2)), expected, angles);
                const double error = std::abs(moments.winding(level, point, T(2)) - expected);
                ASSERT_LE(error, 0.1 + angles);
                errors[0] = std::max(errors[0], error);
                const double exact = std::abs(moments.winding(level, point, T(6)) - expected);
                ASSERT_LE(exact, 0.0008 + angles);
                errors[1] = std::max(errors[1], exact);
            }
        });
    }
    testing::Test::RecordProperty("largest error for accuracy 2", std::to_string(errors[0]));
    testing::Test::RecordProperty("largest error for accuracy 6", std::to_string(errors[1]));
}

TYPED_TEST(Inside, points_are_where_the_winding_number_says) {
    using T = TypeParam;
    int inside = 0, outside = 0;
    for (const TestMesh<T>& mesh : test_meshes<T>()) {
        // A mesh that intersects itself is closed too, but its parity is not its winding number.
        if (!mesh.is_closed && mesh.name != "intersecting") continue;
        SCOPED_TRACE(mesh.name);
        const Asked<T> asked(mesh);
        const double ulp =
            largest_coordinate(mesh) / mesh.size * static_cast<double>(std::numeric_limits<T>::epsilon());
        with_places(mesh, 400, [&](const T(&point)[3], double distance, double winding) {
            if (distance < 1e-5 + 8 * ulp) return;
            const bool is_inside = winding > 0.5;
            ++(is_inside ? inside : outside);
            for (int level = 0; level <= best_library_level(); ++level) {
                ASSERT_EQ(asked.winding(level, point, T(2)) > 0.5, is_inside);
                if (!mesh.is_closed) continue;
                for (const std::int32_t samples : {1, 4, 7})
                    ASSERT_EQ(asked.parity(level, point, samples, T(0.1)), is_inside ? -1 : 1);
                ASSERT_EQ(asked.parity(level, point, 0, T(0.1)), -1);  // no ray says that it is outside
                ASSERT_EQ(asked.side_by_axes(level, point), is_inside ? -1 : 1);
            }
        });
    }
    EXPECT_GT(inside, 500);
    EXPECT_GT(outside, 500);
}

TYPED_TEST(Inside, winding_numbers_follow_points_that_move) {
    using T = TypeParam;
    TestMesh<T> mesh = bumpy<T>(16);
    Asked<T> asked(mesh);
    for (std::size_t i = 0; i < mesh.points.size(); ++i) mesh.points[i] *= i % 3 == 0 ? T(3) : T(0.5);
    asked.refit(mesh);
    with_places(mesh, 200, [&](const T(&point)[3], double distance, double winding) {
        if (distance <= 1e-4) return;
        EXPECT_NEAR(asked.winding(best_library_level(), point, T(2)), winding, 0.1);
    });
}

}  // namespace
}  // namespace weft::runtime::spatial
