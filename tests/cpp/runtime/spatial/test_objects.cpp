// Meshes and BVHs over the user's arrays: refused arguments, descriptors, and changes of the arrays.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/cpu/library.h"
#include "runtime/spatial/bvh.h"
#include "runtime/spatial/geometry.h"
#include "runtime/spatial/mesh.h"
#include "support/error.h"

namespace weft::runtime::spatial {
namespace {

template <typename E>
Array array_of(Type dtype, std::vector<E> numbers, std::int64_t count) {
    Array made = empty(dtype, std::vector<std::int64_t>{count}, device("cpu"));
    if (!numbers.empty()) std::memcpy(made.view.data, numbers.data(), numbers.size() * sizeof(E));
    return made;
}
template <typename T>
Array points_array(const std::vector<T>& numbers) {
    return array_of(Type::vector(sizeof(T) == 4 ? Scalar::f32 : Scalar::f64, 3), numbers,
                    static_cast<std::int64_t>(numbers.size()) / 3);
}
Array integers(const std::vector<std::int32_t>& numbers) {
    return array_of(Type::scalar(Scalar::i32), numbers, static_cast<std::int64_t>(numbers.size()));
}

template <typename Body>
std::string refusal(const Body& body) {
    try {
        body();
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

std::int32_t hit(const Mesh& mesh, float x, float y) {
    auto* const nearest = reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const float*, const float*,
                                                    const float*, const std::int32_t*, std::uint64_t, std::int32_t)>(
        find_library_function("weft_lib_mesh_ray_nearest_f32"));
    const auto address = reinterpret_cast<std::uint64_t>(mesh.descriptor());
    const float start[3] = {x, y, -9}, direction[3] = {0, 0, 1}, limit = 100;
    const std::int32_t root = -1;
    std::int32_t face = -2;
    nearest(&face, &address, start, direction, &limit, &root, 1, 1);
    return face;
}

TEST(SpatialObjects, meshes_follow_their_arrays) {
    const TestMesh<float> cube_mesh = cube<float>();
    const Array points = points_array(cube_mesh.points), indices = integers(cube_mesh.indices);
    Mesh mesh(points, indices, {}, {}, {});
    const auto& described = *static_cast<const devlib::MeshDescriptor<float>*>(mesh.descriptor());
    EXPECT_EQ(described.points.data, points.view.data);
    EXPECT_EQ(described.points.shape[0], 8);
    EXPECT_EQ(described.indices.data, indices.view.data);
    EXPECT_EQ(described.velocities.data, nullptr);
    EXPECT_EQ(described.tree.item_count, 12);
    EXPECT_EQ(static_cast<const devlib::BvhDescriptor<float>*>(mesh.bvh_descriptor())->tree.nodes,
              described.tree.nodes);
    EXPECT_GE(hit(mesh, 0.1F, 0.2F), 0);
    EXPECT_EQ(hit(mesh, 3.1F, 0.2F), -1);

    auto* const moved = static_cast<float*>(points.view.data);
    for (int i = 0; i < 8; ++i) moved[3 * i] += 3;
    EXPECT_GE(hit(mesh, 0.1F, 0.2F), 0) << "not before refit()";
    mesh.refit();
    EXPECT_EQ(hit(mesh, 0.1F, 0.2F), -1);
    EXPECT_GE(hit(mesh, 3.1F, 0.2F), 0);

    const Array others = points_array(cube_mesh.points);
    mesh.set_points(others);
    EXPECT_GE(hit(mesh, 0.1F, 0.2F), 0);
    EXPECT_EQ(described.points.data, others.view.data);
    mesh.set_velocities(others);
    EXPECT_EQ(described.velocities.data, others.view.data);

    // Later indices are not followed.
    static_cast<std::int32_t*>(indices.view.data)[4] = 1 << 30;
    mesh.refit();
    EXPECT_GE(hit(mesh, 0.1F, 0.2F), 0);
}

TEST(SpatialObjects, that_are_empty_are_never_met) {
    const Mesh mesh(points_array<float>({}), integers({}), {}, {}, {});
    EXPECT_EQ(hit(mesh, 0, 0), -1);
    const Mesh only_points(points_array<float>({1, 2, 3}), integers({}), {}, {}, {});
    EXPECT_EQ(hit(only_points, 0, 0), -1);
    const Bvh bvh(points_array<double>({}), points_array<double>({}), {}, {});
    EXPECT_EQ(static_cast<const devlib::BvhDescriptor<double>*>(bvh.descriptor())->tree.node_count, 0);
}

TEST(SpatialObjects, of_another_precision_are_not_met) {
    const TestMesh<double> mesh_of_doubles = cube<double>();
    const Mesh mesh(points_array(mesh_of_doubles.points), integers(mesh_of_doubles.indices), {}, {}, {});
    EXPECT_EQ(hit(mesh, 0.1F, 0.2F), -1);
}

TEST(SpatialObjects, say_which_argument_is_wrong) {
    const TestMesh<float> shape = cube<float>();
    const Array points = points_array(shape.points), indices = integers(shape.indices);
    const auto with_indices = [&](std::vector<std::int32_t> numbers) {
        return refusal([&] { Mesh(points, integers(numbers), {}, {}, {}); });
    };
    EXPECT_EQ(with_indices({0, 1, 2, 3, 8, 4}),
              "Mesh(): indices[4] (corner 1 of face 1) is 8, and there are 8 points: expected 0 <= index < 8");
    EXPECT_NE(with_indices({0, 1, -1}).find("indices[2] (corner 2 of face 0) is -1"), std::string::npos);
    EXPECT_NE(with_indices({0, 1, 2, 3}).find("expected three for each face, got 4"), std::string::npos);
    // The first of many, also if threads look at once.
    std::vector<std::int32_t> many(300000, 0);
    many[100001] = many[200000] = many[299999] = 9;
    EXPECT_NE(with_indices(many).find("indices[100001] "), std::string::npos);

    EXPECT_NE(refusal([&] { Mesh(indices, indices, {}, {}, {}); }).find("points: expected a contiguous array of vec3f"),
              std::string::npos);
    EXPECT_NE(refusal([&] { Mesh(points, points, {}, {}, {}); }).find("indices: expected a contiguous array of int32"),
              std::string::npos);
    EXPECT_NE(refusal([&] { Mesh(slice(points, 0, 0, 4, 2), indices, {}, {}, {}); }).find("not contiguous"),
              std::string::npos);
    EXPECT_NE(
        refusal([&] { Mesh(points, indices, slice(points, 0, 0, 4, 1), {}, {}); }).find("velocities: expected as many"),
        std::string::npos);
    EXPECT_NE(refusal([&] {
                  Mesh(points, indices, {}, {}, integers({1, 2}));
              }).find("groups: expected a number for each of 12"),
              std::string::npos);
    EXPECT_NE(refusal([&] { Bvh(points, slice(points, 0, 0, 4, 1), {}, {}); }).find("uppers: expected as many"),
              std::string::npos);
    EXPECT_NE(
        refusal([&] { Bvh(points, points_array(cube<double>().points), {}, {}); }).find("uppers: expected as many"),
        std::string::npos);
}

TEST(SpatialObjects, boxes_can_be_refitted_and_rebuilt) {
    std::vector<float> low, high;
    Random random(3);
    for (int i = 0; i < 300; ++i) {
        low.push_back(static_cast<float>(uniform(random, -1, 1)));
        high.push_back(low.back() + 0.1F);
    }
    const Array lowers = points_array(low), uppers = points_array(high);
    Bvh bvh(lowers, uppers, {}, {});
    const auto tree = [&] { return static_cast<const devlib::BvhDescriptor<float>*>(bvh.descriptor())->tree; };
    const float before = tree().upper[0];
    static_cast<float*>(uppers.view.data)[0] = 50;
    bvh.refit();
    EXPECT_LT(before, 2);
    EXPECT_EQ(tree().upper[0], 50);
    const void* const old = bvh.descriptor();
    static_cast<float*>(uppers.view.data)[0] = 70;
    bvh.rebuild({TreeMethod::linear, 2});
    EXPECT_NE(bvh.descriptor(), old);
    EXPECT_NE(bvh.previous(), nullptr);
    EXPECT_EQ(tree().upper[0], 70);
    EXPECT_EQ(static_cast<const devlib::BvhDescriptor<float>*>(old)->tree.upper[0], 50);
}

}  // namespace
}  // namespace weft::runtime::spatial
