// Queries that give one item after the other: each item whose box meets the shape once, and no other, at every level of
// processors; compared with all boxes one by one.
#include <gtest/gtest.h>

#include <set>

#include "runtime/cpu/library.h"
#include "runtime/spatial/geometry.h"

namespace weft::runtime::spatial {
namespace {

template <typename T>
class Boxes {
public:
    Boxes(std::vector<T> lowers, std::vector<T> uppers, const TreeOptions& options,
          std::span<const std::int32_t> groups)
        : lowers_(std::move(lowers)),
          uppers_(std::move(uppers)),
          tree_(points(lowers_), points(uppers_), static_cast<std::int64_t>(lowers_.size()) / 3, options, groups) {
        descriptor_.scalar_bytes = sizeof(T);
        descriptor_.tree = tree_.tree();
    }

    // All items that a query gives, in its order.
    template <typename... Arguments>
    std::vector<std::int32_t> all(const char* what, int level, std::int32_t root, const Arguments*... arguments) const {
        const std::string name = std::string("weft_lib_bvh_next_") + what + (sizeof(T) == 4 ? "_f32" : "_f64");
        auto* const next =
            reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const Arguments*..., const std::int32_t*,
                                      const std::int32_t*, std::uint64_t, std::int32_t)>(
                find_library_function(name, level));
        const auto address = reinterpret_cast<std::uint64_t>(&descriptor_);
        std::vector<std::int32_t> found;
        std::int32_t result[5] = {0, root, -1, 0, 0};
        while (true) {
            const std::int32_t walk[4] = {result[1], result[2], result[3], result[4]};
            next(result, &address, arguments..., &root, walk, 1, 1);
            if (result[0] < 0) break;
            found.push_back(result[0]);
            if (found.size() > lowers_.size()) return found;
        }
        // At the end it stays.
        const std::int32_t walk[4] = {result[1], result[2], result[3], result[4]};
        next(result, &address, arguments..., &root, walk, 1, 1);
        EXPECT_EQ(result[0], -1);
        return found;
    }

    Vec lower(std::int32_t i) const { return as_vec(&lowers_[static_cast<std::size_t>(3 * i)]); }
    Vec upper(std::int32_t i) const { return as_vec(&uppers_[static_cast<std::size_t>(3 * i)]); }
    std::int32_t count() const { return static_cast<std::int32_t>(lowers_.size() / 3); }
    std::int32_t group_root(int level, std::int32_t group) const {
        auto* const find =
            reinterpret_cast<void (*)(std::int32_t*, const std::uint64_t*, const std::int32_t*, std::uint64_t,
                                      std::int32_t)>(find_library_function("weft_lib_bvh_group_root", level));
        const auto address = reinterpret_cast<std::uint64_t>(&descriptor_);
        std::int32_t root = -7;
        find(&root, &address, &group, 1, 1);
        return root;
    }
    const devlib::Tree<T>& tree() const { return descriptor_.tree; }

private:
    static Points<T> points(const std::vector<T>& values) {
        return {reinterpret_cast<const std::byte*>(values.data())};
    }

    std::vector<T> lowers_, uppers_;
    BoxTree<T> tree_;
    devlib::BvhDescriptor<T> descriptor_;
};

template <typename T>
Boxes<T> random_boxes(int count, const TreeOptions& options, const std::vector<std::int32_t>& groups = {}) {
    Random random(5);
    std::vector<T> lowers, uppers;
    for (int i = 0; i < 3 * count; ++i) {
        lowers.push_back(static_cast<T>(uniform(random, -1, 1)));
        uppers.push_back(lowers.back() + static_cast<T>(i % 7 == 0 ? 0 : uniform(random, 0, 0.2)));
    }
    // Some that are never found.
    for (std::size_t i = 0; i < lowers.size(); i += 160) lowers[i] = std::numeric_limits<T>::quiet_NaN();
    for (std::size_t i = 0; i < lowers.size(); i += 170) uppers[i] = lowers[i] - 1;
    return Boxes<T>(std::move(lowers), std::move(uppers), options, groups);
}

// The items that certainly meet the shape, and those that may. how_far(lower, upper): < 0 if a box certainly meets.
template <typename T, typename HowFar>
void expect(
    const Boxes<T>& boxes, std::vector<std::int32_t> found, double slack, const HowFar& how_far,
    const std::function<bool(std::int32_t)>& counts = [](std::int32_t) { return true; }) {
    std::ranges::sort(found);
    ASSERT_EQ(std::ranges::adjacent_find(found), found.end()) << "given twice";
    for (std::int32_t i = 0; i < boxes.count(); ++i) {
        const Vec lower = boxes.lower(i), upper = boxes.upper(i);
        const bool is_box = lower[0] <= upper[0] && lower[1] <= upper[1] && lower[2] <= upper[2] && counts(i);
        const double distance = is_box ? how_far(lower, upper) : 1;
        if (std::abs(distance) <= slack) continue;
        ASSERT_EQ(std::ranges::binary_search(found, i), distance < 0) << i << " " << distance;
    }
}

double outside_of(const Vec& p, const Vec& lower, const Vec& upper) {
    double squared = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double d = std::max({lower[axis] - p[axis], p[axis] - upper[axis], 0.0});
        squared += d * d;
    }
    return std::sqrt(squared);
}

// How far a segment stays away from a box, negative if it goes through: the greatest gap of the ranges in which it is
// between two planes.
double gap(const Vec& start, const Vec& direction, double limit, const Vec& lower, const Vec& upper) {
    double first = 0, last = limit;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double a = (lower[axis] - start[axis]) / direction[axis],
                     b = (upper[axis] - start[axis]) / direction[axis];
        first = std::max(first, std::min(a, b)), last = std::min(last, std::max(a, b));
    }
    return first - last;
}

template <typename T>
class Overlaps : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Overlaps, Types);

TYPED_TEST(Overlaps, are_the_boxes_that_meet_the_shape) {
    using T = TypeParam;
    Random random(1);
    std::size_t most = 0;
    for (const int count : {1, 7, 300, 5000})
        for (const int leaf_size : {1, 4, 8}) {
            const Boxes<T> boxes = random_boxes<T>(count, {TreeMethod::sah, leaf_size});
            for (int i = 0; i < 40; ++i) {
                T a[3], b[3], upper[3], radius = static_cast<T>(uniform(random, 0, 0.6));
                const T limit = static_cast<T>(uniform(random, 0.1, 2));
                for (int axis = 0; axis < 3; ++axis) {
                    a[axis] = static_cast<T>(uniform(random, -1.2, 1.2));
                    b[axis] = static_cast<T>(uniform(random, -1, 1));
                    upper[axis] = a[axis] + static_cast<T>(uniform(random, -0.01, 0.8));
                }
                const double slack = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
                for (int level = 0; level <= best_library_level(); ++level) {
                    const std::vector<std::int32_t> in_box = boxes.all("box", level, -1, a, upper);
                    most = std::max(most, in_box.size());
                    expect(boxes, in_box, 0, [&](const Vec& low, const Vec& high) {
                        for (std::size_t axis = 0; axis < 3; ++axis)
                            if (low[axis] > upper[axis] || high[axis] < a[axis]) return 1.0;
                        return -1.0;
                    });
                    expect(boxes, boxes.all("sphere", level, -1, a, &radius), slack,
                           [&](const Vec& low, const Vec& high) { return outside_of(as_vec(a), low, high) - radius; });
                    expect(
                        boxes, boxes.all("ray", level, -1, a, b, &limit), 100 * slack,
                        [&](const Vec& low, const Vec& high) { return gap(as_vec(a), as_vec(b), limit, low, high); });
                    const Vec reach{double(radius), double(radius), double(radius)};
                    expect(boxes, boxes.all("capsule", level, -1, a, b, &radius, &limit), 100 * slack,
                           [&](const Vec& low, const Vec& high) {
                               return gap(as_vec(a), as_vec(b), limit, low - reach, high + reach);
                           });
                }
            }
        }
    EXPECT_GT(most, 100U);
}

TYPED_TEST(Overlaps, of_a_group_are_its_items_alone) {
    using T = TypeParam;
    std::vector<std::int32_t> groups;
    for (std::int32_t i = 0; i < 3000; ++i) groups.push_back(i % 37 * 3);
    const Boxes<T> boxes = random_boxes<T>(3000, {}, groups);
    const T lower[3] = {T(-0.5), T(-2), T(-0.5)}, upper[3] = {2, T(0.5), 2};
    const auto how_far = [&](const Vec& low, const Vec& high) {
        for (std::size_t axis = 0; axis < 3; ++axis)
            if (low[axis] > upper[axis] || high[axis] < lower[axis]) return 1.0;
        return -1.0;
    };
    for (int level = 0; level <= best_library_level(); ++level) {
        expect(boxes, boxes.all("box", level, -1, lower, upper), 0, how_far);
        for (int g = 0; g < boxes.tree().group_count; ++g) {
            ASSERT_EQ(boxes.group_root(level, boxes.tree().groups[g]), boxes.tree().group_roots[g]);
            ASSERT_EQ(boxes.group_root(level, boxes.tree().groups[g] + 1), -1);
            const std::vector<std::int32_t> found = boxes.all("box", level, boxes.tree().group_roots[g], lower, upper);
            EXPECT_FALSE(found.empty());
            expect(boxes, found, 0, how_far,
                   [&](std::int32_t i) { return groups[static_cast<std::size_t>(i)] == boxes.tree().groups[g]; });
        }
        for (const std::int32_t root : {-2, boxes.tree().node_count, 1 << 30})
            EXPECT_TRUE(boxes.all("box", level, root, lower, upper).empty());
    }
}

TYPED_TEST(Overlaps, with_what_is_no_shape_are_none) {
    using T = TypeParam;
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
    const Boxes<T> boxes = random_boxes<T>(100, {});
    const T zero[3] = {0, 0, 0}, nan[3] = {0, kNan, 0}, one[3] = {1, 1, 1}, unlimited = 10;
    for (int level = 0; level <= best_library_level(); ++level) {
        EXPECT_TRUE(boxes.all("box", level, -1, nan, one).empty());
        EXPECT_TRUE(boxes.all("box", level, -1, one, zero).empty());
        EXPECT_TRUE(boxes.all("sphere", level, -1, zero, &kNan).empty());
        EXPECT_TRUE(boxes.all("sphere", level, -1, nan, &unlimited).empty());
        EXPECT_TRUE(boxes.all("ray", level, -1, zero, zero, &unlimited).empty());
        EXPECT_TRUE(boxes.all("ray", level, -1, nan, one, &unlimited).empty());
        EXPECT_TRUE(boxes.all("capsule", level, -1, zero, one, &kNan, &unlimited).empty());
        EXPECT_FALSE(boxes.all("sphere", level, -1, zero, &unlimited).empty());
    }
}

TYPED_TEST(Overlaps, a_negative_radius_counts_as_zero) {
    using T = TypeParam;
    const Boxes<T> boxes = random_boxes<T>(3000, {});
    const T nothing = 0, minus = -1, one[3] = {1, 1, 1}, unlimited = 10;
    std::size_t found = 0;
    for (int i = 0; i < 20; ++i) {
        const Vec middle = 0.5 * (boxes.lower(100 + i) + boxes.upper(100 + i));
        const T centre[3] = {T(middle[0]), T(middle[1]), T(middle[2])};
        for (int level = 0; level <= best_library_level(); ++level) {
            const std::vector<std::int32_t> balls = boxes.all("sphere", level, -1, centre, &nothing);
            found += balls.size();
            EXPECT_EQ(boxes.all("sphere", level, -1, centre, &minus), balls);
            EXPECT_EQ(boxes.all("capsule", level, -1, centre, one, &minus, &unlimited),
                      boxes.all("capsule", level, -1, centre, one, &nothing, &unlimited));
        }
    }
    EXPECT_GT(found, 20U);
}

}  // namespace
}  // namespace weft::runtime::spatial
