// Trees: each item is in one leaf, boxes hold what is below them, links lead back, also after refits.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "runtime/cpu/thread_pool.h"
#include "runtime/spatial/meshes.h"

namespace weft::runtime::spatial {
namespace {

using devlib::kWidth;

template <typename T>
void expect_box(const T (&bounds)[2][3][kWidth], int slot, const T* lower, const T* upper) {
    for (int axis = 0; axis < 3; ++axis) {
        ASSERT_LE(bounds[0][axis][slot], lower[axis]);
        ASSERT_GE(bounds[1][axis][slot], upper[axis]);
    }
}

// Goes through everything below a node; returns the items there.
template <typename T, typename BoxOf>
std::vector<std::int32_t> check_below(const devlib::Tree<T>& tree, std::int32_t number, const BoxOf& box_of,
                                      int depth = 0) {
    std::vector<std::int32_t> found;
    const devlib::Node<T>& node = tree.nodes[number];
    EXPECT_LT(depth, devlib::kMostLevels);
    EXPECT_GE(node.count, 1);
    for (int slot = 0; slot < kWidth; ++slot) {
        if (slot >= node.count) {
            EXPECT_EQ(node.bounds[0][0][slot], std::numeric_limits<T>::infinity());
            EXPECT_EQ(node.bounds[1][0][slot], -std::numeric_limits<T>::infinity());
            continue;
        }
        const std::int32_t child = node.child[slot];
        std::vector<std::int32_t> items;
        if (child >= 0) {
            EXPECT_GT(child, number);
            EXPECT_EQ(tree.nodes[child].parent, number);
            EXPECT_EQ(tree.nodes[child].slot, slot);
            items = check_below(tree, child, box_of, depth + 1);
        } else {
            const std::int32_t* const lanes =
                tree.triangles != nullptr ? tree.triangles[-1 - child].item : tree.boxes[-1 - child].item;
            for (int lane = 0; lane < kWidth && lanes[lane] >= 0; ++lane) items.push_back(lanes[lane]);
            EXPECT_FALSE(items.empty());
        }
        for (const std::int32_t item : items) {
            T lower[3], upper[3];
            if (box_of(item, lower, upper)) expect_box(node.bounds, slot, lower, upper);
        }
        found.insert(found.end(), items.begin(), items.end());
    }
    return found;
}

template <typename T, typename BoxOf>
void check(const devlib::Tree<T>& tree, std::int64_t count, const BoxOf& box_of) {
    ASSERT_EQ(tree.item_count, count);
    if (count == 0) {
        ASSERT_EQ(tree.node_count, 0);
        return;
    }
    EXPECT_EQ(tree.nodes[0].parent, -1);
    std::vector<std::int32_t> items = check_below(tree, 0, box_of);
    std::ranges::sort(items);
    ASSERT_EQ(static_cast<std::int64_t>(items.size()), count);
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(items[static_cast<std::size_t>(i)], i);
}

template <typename T>
auto boxes_of(const TestMesh<T>& mesh) {
    return [&mesh](std::int32_t face, T* lower, T* upper) {
        for (int axis = 0; axis < 3; ++axis) {
            lower[axis] = upper[axis] = mesh.corner(face, 0)[axis];
            for (int corner = 1; corner < 3; ++corner) {
                lower[axis] = std::min(lower[axis], mesh.corner(face, corner)[axis]);
                upper[axis] = std::max(upper[axis], mesh.corner(face, corner)[axis]);
            }
        }
        return true;
    };
}

constexpr TreeMethod kMethods[] = {TreeMethod::sah, TreeMethod::linear, TreeMethod::median};

template <typename T>
class Trees : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Trees, Types);

TYPED_TEST(Trees, hold_every_triangle_in_boxes_that_are_large_enough) {
    using T = TypeParam;
    for (const TestMesh<T>& mesh : test_meshes<T>())
        for (const TreeMethod method : kMethods)
            for (const int leaf_size : {1, 4, 8}) {
                SCOPED_TRACE(mesh.name);
                TriangleTree<T> tree(mesh.corners(), mesh.indices, {method, leaf_size});
                check(tree.tree(), mesh.faces(), boxes_of(mesh));
                for (std::int64_t face = 0; face < tree.tree().node_count; ++face)
                    for (int slot = 0; slot < tree.tree().nodes[face].count; ++slot)
                        if (const std::int32_t child = tree.tree().nodes[face].child[slot];
                            child < 0 && leaf_size < 8) {
                            ASSERT_EQ(tree.tree().triangles[-1 - child].item[leaf_size], -1);
                        }
            }
}

TYPED_TEST(Trees, of_many_items_do_not_depend_on_the_number_of_threads) {
    using T = TypeParam;
    const TestMesh<T> mesh = soup<T>("", 30000, 0.02, {1, 1, 1}, 4);
    const int threads = cpu_threads();
    for (const TreeMethod method : kMethods) {
        std::vector<devlib::Node<T>> nodes;
        for (const int count : {1, 4}) {
            set_cpu_threads(count);
            TriangleTree<T> tree(mesh.corners(), mesh.indices, {.method = method});
            check(tree.tree(), mesh.faces(), boxes_of(mesh));
            const std::span made(tree.tree().nodes, static_cast<std::size_t>(tree.tree().node_count));
            if (count == 1) {
                nodes.assign(made.begin(), made.end());
                continue;
            }
            ASSERT_EQ(nodes.size(), made.size());
            for (std::size_t i = 0; i < made.size(); ++i) {
                ASSERT_EQ(std::memcmp(nodes[i].bounds, made[i].bounds, sizeof made[i].bounds), 0);
                ASSERT_EQ(std::memcmp(nodes[i].child, made[i].child, sizeof made[i].child), 0);
            }
        }
    }
    set_cpu_threads(threads);
}

TYPED_TEST(Trees, follow_points_that_move) {
    using T = TypeParam;
    Random random(8);
    TestMesh<T> mesh = soup<T>("", 12000, 0.05, {1, 1, 1}, 4);
    TriangleTree<T> tree(mesh.corners(), mesh.indices, {});
    for (T& x : mesh.points) x = static_cast<T>(x * 2 + uniform(random, -0.3, 0.3));
    tree.refit(mesh.corners());
    check(tree.tree(), mesh.faces(), boxes_of(mesh));
    const TriangleTree<T> fresh(mesh.corners(), mesh.indices, {});
    for (int axis = 0; axis < 3; ++axis) {
        EXPECT_EQ(tree.tree().lower[axis], fresh.tree().lower[axis]);
        EXPECT_EQ(tree.tree().upper[axis], fresh.tree().upper[axis]);
    }
}

TYPED_TEST(Trees, give_each_group_a_root_with_its_items_alone) {
    using T = TypeParam;
    const TestMesh<T> mesh = soup<T>("", 20000, 0.05, {1, 1, 1}, 6);
    Random random(2);
    for (const int group_count : {1, 3, 100, 5000})
        for (const TreeMethod method : kMethods) {
            std::vector<std::int32_t> groups(20000);
            std::map<std::int32_t, std::vector<std::int32_t>> expected;
            for (std::int32_t i = 0; i < 20000; ++i) {
                // A large group, and others of a few items.
                const auto group =
                    static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(group_count)) * 7 - 20;
                groups[static_cast<std::size_t>(i)] = i < 9000 ? -20 : group;
                expected[groups[static_cast<std::size_t>(i)]].push_back(i);
            }
            TriangleTree<T> tree(mesh.corners(), mesh.indices, {.method = method}, groups);
            check(tree.tree(), mesh.faces(), boxes_of(mesh));
            ASSERT_EQ(tree.tree().group_count, static_cast<std::int32_t>(expected.size()));
            int i = 0;
            for (const auto& [group, items] : expected) {
                ASSERT_EQ(tree.tree().groups[i], group);
                std::vector<std::int32_t> below =
                    check_below(tree.tree(), tree.tree().group_roots[i++], boxes_of(mesh));
                std::ranges::sort(below);
                ASSERT_EQ(below, items);
            }
        }
}

TYPED_TEST(Trees, of_equal_and_of_nested_items_are_not_too_deep) {
    using T = TypeParam;
    std::vector<T> equal, nested;
    for (int i = 0; i < 3000; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            equal.push_back(T(0.25));
            nested.push_back(static_cast<T>(std::exp2(-0.03 * i)));  // at every scale down to 1e-27
        }
    for (const std::vector<T>& values : {equal, nested})
        for (const TreeMethod method : kMethods) {
            const Points<T> points{reinterpret_cast<const std::byte*>(values.data())};
            BoxTree<T> tree(points, points, 3000, {method, 1});
            check(tree.tree(), 3000, [&](std::int32_t i, T* lower, T* upper) {
                std::copy_n(points[i], 3, lower);
                std::copy_n(points[i], 3, upper);
                return true;
            });
        }
}

TYPED_TEST(Trees, take_boxes_that_are_empty_infinite_or_no_numbers) {
    using T = TypeParam;
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN(), kInfinity = std::numeric_limits<T>::infinity();
    Random random(2);
    std::vector<T> lowers(3 * 500), uppers(3 * 500);
    for (std::size_t i = 0; i < lowers.size(); ++i) {
        lowers[i] = static_cast<T>(uniform(random, -1, 1));
        uppers[i] = lowers[i] + static_cast<T>(uniform(random, 0, 0.3));
        if (i % 70 == 0) lowers[i] = kNan;
        if (i % 71 == 0) uppers[i] = lowers[i] - 1;
        if (i % 72 == 0) uppers[i] = kInfinity;
        if (i % 73 == 0) lowers[i] = -kInfinity;
        if (i % 74 == 0) lowers[i] = -std::numeric_limits<T>::max(), uppers[i] = std::numeric_limits<T>::max();
    }
    const Points<T> lower_points{reinterpret_cast<const std::byte*>(lowers.data())};
    const Points<T> upper_points{reinterpret_cast<const std::byte*>(uppers.data())};
    const auto box_of = [&](std::int32_t i, T* lower, T* upper) {
        std::copy_n(lower_points[i], 3, lower);
        std::copy_n(upper_points[i], 3, upper);
        return lower[0] <= upper[0] && lower[1] <= upper[1] && lower[2] <= upper[2];
    };
    for (const TreeMethod method : kMethods) {
        BoxTree<T> tree(lower_points, upper_points, 500, {.method = method});
        check(tree.tree(), 500, box_of);
    }
}

TYPED_TEST(Trees, of_no_items_and_of_one) {
    using T = TypeParam;
    const TestMesh<T> mesh = tetrahedron<T>();
    for (const TreeMethod method : kMethods) {
        check(TriangleTree<T>(mesh.corners(), {}, {.method = method}).tree(), 0, boxes_of(mesh));
        const std::vector<std::int32_t> one = {0, 1, 2};
        check(TriangleTree<T>(mesh.corners(), one, {.method = method}).tree(), 1, boxes_of(mesh));
        const std::vector<std::int32_t> group = {4};
        check(TriangleTree<T>(mesh.corners(), one, {.method = method}, group).tree(), 1, boxes_of(mesh));
    }
}

}  // namespace
}  // namespace weft::runtime::spatial
