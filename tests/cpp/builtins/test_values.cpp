// The results of composed builtins, held against their defining properties and against plain C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "builtins/evaluate.h"

namespace weft::builtins::testing {
namespace {

using Numbers = std::vector<double>;
constexpr double kPi = std::numbers::pi;

void expect_near(const Numbers& found, const Numbers& expected, double tolerance = 1e-12) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << "component " << i;
}

// Numbers without pattern, the same in every run.
Numbers numbers(int n, int seed = 1) {
    Numbers out;
    for (int i = 0; i < n; ++i) out.push_back(std::fmod(std::sin(12.9898 * (i + 1) + 78.233 * seed) * 43758.5453, 1.7));
    return out;
}
Numbers unit(Numbers v) {
    double square = 0;
    for (double x : v) square += x * x;
    for (double& x : v) x /= std::sqrt(square);
    return v;
}
Numbers identity(int n) {
    Numbers out(static_cast<std::size_t>(n * n), 0.0);
    for (int i = 0; i < n; ++i) out[static_cast<std::size_t>(i * n + i)] = 1;
    return out;
}

// Leibniz: the sum over all permutations.
double determinant(const Numbers& m, int n) {
    std::vector<int> columns(static_cast<std::size_t>(n));
    std::iota(columns.begin(), columns.end(), 0);
    double total = 0;
    do {
        double term = 1;
        for (int i = 0; i < n; ++i) {
            term *= m[static_cast<std::size_t>(i * n + columns[static_cast<std::size_t>(i)])];
            for (int j = 0; j < i; ++j)
                if (columns[static_cast<std::size_t>(j)] > columns[static_cast<std::size_t>(i)]) term = -term;
        }
        total += term;
    } while (std::next_permutation(columns.begin(), columns.end()));
    return total;
}

TEST(Matrices, determinant_is_the_sum_over_permutations) {
    for (int n = 2; n <= 4; ++n) {
        const Numbers m = numbers(n * n);
        EXPECT_NEAR(call("determinant", {matrix(n, n, m)}).number(), determinant(m, n), 1e-12) << n;
    }
}

TEST(Matrices, inverse_times_matrix_is_the_identity) {
    for (int n = 2; n <= 4; ++n) {
        for (int seed = 1; seed < 6; ++seed) {
            const Actual m = matrix(n, n, numbers(n * n, seed));
            const Evaluated inverse = call("inverse", {m});
            expect_near(call("matmul", {matrix(n, n, inverse.numbers), m}).numbers, identity(n), 1e-10);
        }
    }
}

TEST(Matrices, a_singular_matrix_has_the_zero_inverse) {
    for (int n = 2; n <= 4; ++n) {
        const Numbers ones(static_cast<std::size_t>(n * n), 1.0);
        EXPECT_EQ(call("inverse", {matrix(n, n, ones)}).numbers, Numbers(ones.size(), 0.0));
    }
}

TEST(Matrices, skew_is_the_cross_product) {
    const Actual a = vector(numbers(3, 1)), b = vector(numbers(3, 2));
    expect_near(call("mul", {matrix(3, 3, call("skew", {a}).numbers), b}).numbers, call("cross", {a, b}).numbers);
    EXPECT_EQ(call("cross", {vector({1, 0, 0}), vector({0, 1, 0})}).numbers, (Numbers{0, 0, 1}));
}

TEST(Matrices, are_put_together_and_taken_apart) {
    EXPECT_EQ(call("outer", {vector({1, 2}), vector({3, 4, 5})}).numbers, (Numbers{3, 4, 5, 6, 8, 10}));
    EXPECT_EQ(call("diag", {vector({1, 2})}).numbers, (Numbers{1, 0, 0, 2}));
    EXPECT_EQ(call("get_diag", {matrix(2, 2, {1, 2, 3, 4})}).numbers, (Numbers{1, 4}));
    EXPECT_EQ(call("trace", {matrix(2, 2, {1, 2, 3, 4})}).number(), 5);
    EXPECT_EQ(call("matrix_from_rows", {vector({1, 2}), vector({3, 4}), vector({5, 6})}).numbers,
              (Numbers{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(call("matrix_from_cols", {vector({1, 2}), vector({3, 4}), vector({5, 6})}).numbers,
              (Numbers{1, 3, 5, 2, 4, 6}));
    EXPECT_EQ(call("ddot", {matrix(1, 2, {1, 2}), matrix(1, 2, {3, 4})}).number(), 11);
}

TEST(Vectors, lengths_and_extremes) {
    EXPECT_EQ(call("length", {vector({3, 4})}).number(), 5);
    EXPECT_EQ(call("normalize", {vector({0, 0, 0})}).numbers, (Numbers{0, 0, 0}));
    expect_near(call("normalize", {vector({3, 0, -4})}).numbers, {0.6, 0, -0.8});
    EXPECT_EQ(call("argmin", {vector({2, 1, 1})}).number(), 1);
    EXPECT_EQ(call("argmax", {vector({2, 3, 3})}).number(), 1);
    EXPECT_EQ(call("min", {vector({2, -1, 1})}).number(), -1);
    EXPECT_EQ(call("max", {vector({2, -1, 1}), vector({1, 1, 1})}).numbers, (Numbers{2, 1, 1}));
}

TEST(Scalars, conventions) {
    EXPECT_EQ(call("sign", {f64(-0.0)}).number(), 1);
    EXPECT_EQ(call("sign", {f64(-2.0)}).number(), -1);
    EXPECT_EQ(call("step", {f64(-2.0)}).number(), 1);
    EXPECT_EQ(call("step", {f64(0.0)}).number(), 0);
    EXPECT_EQ(call("nonzero", {f64(-2.0)}).number(), 1);
    EXPECT_EQ(call("frac", {f64(-2.75)}).number(), -0.75);
    EXPECT_EQ(call("clamp", {f64(5), f64(0), f64(1)}).number(), 1);
    EXPECT_NEAR(call("degrees", {f64(kPi)}).number(), 180, 1e-12);
    EXPECT_NEAR(call("radians", {f64(180)}).number(), kPi, 1e-15);
    EXPECT_EQ(call("smoothstep", {f64(0), f64(2), f64(1)}).number(), 0.5);
    EXPECT_EQ(call("lerp", {f64(2), f64(4), f64(0.25)}).number(), 2.5);
}

TEST(Operators, floor_division_rounds_down_for_every_sign) {
    for (int a = -7; a <= 7; ++a) {
        for (int b : {-3, -2, -1, 1, 2, 3}) {
            EXPECT_EQ(call("floordiv", {i32(a), i32(b)}).number(), std::floor(double(a) / b)) << a << " // " << b;
            EXPECT_EQ(call("mod", {i32(a), i32(b)}).number(), a % b);
        }
    }
    EXPECT_EQ(call("floordiv", {f64(-7.5), f64(2)}).number(), -4);
}

TEST(Operators, matrices_meet_vectors_from_both_sides) {
    EXPECT_EQ(call("mul", {matrix(2, 3, {1, 2, 3, 4, 5, 6}), vector({1, 0, 1})}).numbers, (Numbers{4, 10}));
    EXPECT_EQ(call("mul", {vector({1, 1}), matrix(2, 3, {1, 2, 3, 4, 5, 6})}).numbers, (Numbers{5, 7, 9}));
    EXPECT_EQ(call("div", {f64(6), vector({1, 2, 3})}).numbers, (Numbers{6, 3, 2}));
}

TEST(Norms, follow_their_formulas) {
    const Actual v = vector({3, -4});
    EXPECT_EQ(call("norm_l1", {v}).number(), 7);
    EXPECT_EQ(call("norm_l2", {v}).number(), 5);
    EXPECT_EQ(call("norm_huber", {v, f64(10)}).number(), 12.5);
    EXPECT_EQ(call("norm_huber", {v, f64(2)}).number(), 2 * (5 - 1));
    EXPECT_NEAR(call("norm_pseudo_huber", {v, f64(2)}).number(), 2 * std::sqrt(1 + 25.0 / 4), 1e-12);
}

TEST(Quaternions, rotate_as_their_matrix_does) {
    for (int seed = 1; seed < 5; ++seed) {
        const Actual q = quaternion(unit(numbers(4, seed)));
        const Actual v = vector(numbers(3, seed + 10));
        const Evaluated rotated = call("quat_rotate", {q, v});
        expect_near(call("mul", {matrix(3, 3, call("quat_to_matrix", {q}).numbers), v}).numbers, rotated.numbers);
        expect_near(call("quat_rotate_inv", {q, vector(rotated.numbers)}).numbers, v.numbers);
    }
}

TEST(Quaternions, turn_counterclockwise_about_their_axis) {
    const Evaluated q = call("quat_from_axis_angle", {vector({0, 0, 1}), f64(kPi / 2)});
    expect_near(call("quat_rotate", {quaternion(q.numbers), vector({1, 0, 0})}).numbers, {0, 1, 0});
    expect_near(call("quat_from_axis_angle", {f64(0), f64(0), f64(1), f64(kPi / 2)}).numbers, q.numbers);
}

TEST(Quaternions, product_is_one_rotation_after_the_other) {
    const Actual a = quaternion(unit(numbers(4, 1))), b = quaternion(unit(numbers(4, 2))), v = vector(numbers(3, 3));
    const Evaluated both = call("mul", {a, b});
    expect_near(call("quat_rotate", {quaternion(both.numbers), v}).numbers,
                call("quat_rotate", {a, vector(call("quat_rotate", {b, v}).numbers)}).numbers);
}

TEST(Quaternions, come_back_from_their_matrix_whichever_component_is_greatest) {
    for (int greatest = 0; greatest < 4; ++greatest) {
        Numbers q = {0.1, -0.2, 0.15, 0.12};
        q[static_cast<std::size_t>(greatest)] = 0.9;
        q = unit(q);
        const Evaluated m = call("quat_to_matrix", {quaternion(q)});
        expect_near(call("quat_from_matrix", {matrix(3, 3, m.numbers)}).numbers, q);
    }
}

TEST(Quaternions, come_back_from_axis_and_angle) {
    const Numbers axis = unit({1, -2, 0.5});
    const Evaluated q = call("quat_from_axis_angle", {vector(axis), f64(1.25)});
    const Evaluated parts = call("quat_to_axis_angle", {quaternion(q.numbers)});
    expect_near(parts.numbers, {axis[0], axis[1], axis[2], 1.25});
    std::vector<Evaluated> assigned;
    call("quat_to_axis_angle", {quaternion(q.numbers), vector({0, 0, 0}), f64(0)}, &assigned);
    ASSERT_EQ(assigned.size(), 2u);
    expect_near(assigned[0].numbers, axis);
    EXPECT_NEAR(assigned[1].number(), 1.25, 1e-12);
}

TEST(Quaternions, come_back_from_roll_pitch_and_yaw) {
    const Evaluated q = call("quat_rpy", {f64(0.3), f64(-0.7), f64(2.1)});
    expect_near(call("quat_to_rpy", {quaternion(q.numbers)}).numbers, {0.3, -0.7, 2.1});
    const Evaluated roll = call("quat_rpy", {f64(kPi / 2), f64(0), f64(0)});
    expect_near(call("quat_rotate", {quaternion(roll.numbers), vector({0, 1, 0})}).numbers, {0, 0, 1});
}

TEST(Quaternions, slerp_turns_evenly_along_the_shorter_arc) {
    const Actual axis = vector({0, 1, 0});
    const auto turned = [&](double angle) { return call("quat_from_axis_angle", {axis, f64(angle)}).numbers; };
    expect_near(call("quat_slerp", {quaternion(turned(0.2)), quaternion(turned(1.2)), f64(0.3)}).numbers, turned(0.5));
    expect_near(call("quat_slerp", {quaternion(turned(0.2)), quaternion(turned(0.2)), f64(0.3)}).numbers, turned(0.2));
    Numbers other = turned(1.2);
    for (double& v : other) v = -v;
    expect_near(call("quat_slerp", {quaternion(turned(0.2)), quaternion(other), f64(0.3)}).numbers, turned(0.5));
}

TEST(Quaternions, twist_is_the_turn_about_the_axis) {
    const Actual axis = vector({0, 0, 1});
    const Evaluated swing = call("quat_from_axis_angle", {vector({1, 0, 0}), f64(0.4)});
    const Evaluated turn = call("quat_from_axis_angle", {axis, f64(-0.9)});
    const Actual q = quaternion(call("mul", {quaternion(swing.numbers), quaternion(turn.numbers)}).numbers);
    expect_near(call("quat_twist", {axis, q}).numbers, turn.numbers);
    EXPECT_NEAR(call("quat_twist_angle", {axis, q}).number(), 0.9, 1e-12);
    EXPECT_NEAR(call("quat_twist_angle_signed", {axis, q}).number(), -0.9, 1e-12);
}

Numbers some_transform(int seed) {
    Numbers t = numbers(3, seed);
    for (double v : unit(numbers(4, seed + 1))) t.push_back(v);
    return t;
}

TEST(Transforms, inverse_undoes_them) {
    const Actual t = transform(some_transform(3));
    const Evaluated inverse = call("transform_inverse", {t});
    expect_near(call("transform_multiply", {transform(inverse.numbers), t}).numbers, {0, 0, 0, 0, 0, 0, 1});
}

TEST(Transforms, act_as_their_matrix_does) {
    const Actual t = transform(some_transform(5)), v = vector(numbers(3, 9));
    const Actual m = matrix(4, 4, call("transform_to_matrix", {t}).numbers);
    expect_near(call("transform_point", {m, v}).numbers, call("transform_point", {t, v}).numbers);
    expect_near(call("transform_vector", {m, v}).numbers, call("transform_vector", {t, v}).numbers);
    const Evaluated back = call("transform_from_matrix", {m});
    expect_near(call("transform_point", {transform(back.numbers), v}).numbers, call("transform_point", {t, v}).numbers);
}

TEST(Transforms, decompose_finds_what_compose_took) {
    Numbers q = unit({0.2, -0.3, 0.1, 0.8});
    for (double mirror : {1.0, -1.0}) {
        const Evaluated m = call("transform_compose", {vector({1, 2, 3}), quaternion(q), vector({2 * mirror, 3, 0.5})});
        expect_near(call("transform_decompose", {matrix(4, 4, m.numbers)}).numbers,
                    {1, 2, 3, q[0], q[1], q[2], q[3], 2 * mirror, 3, 0.5});
    }
}

TEST(Spatial, power_does_not_depend_on_the_frame) {
    const Actual t = transform(some_transform(7)), twist = vector(numbers(6, 1)), wrench = vector(numbers(6, 2));
    const Evaluated moved = call("spatial_dot", {vector(call("transform_twist", {t, twist}).numbers),
                                                 vector(call("transform_wrench", {t, wrench}).numbers)});
    EXPECT_NEAR(moved.number(), call("spatial_dot", {twist, wrench}).number(), 1e-12);
}

TEST(Spatial, the_two_cross_products_are_dual) {
    const Actual a = vector(numbers(6, 1)), b = vector(numbers(6, 2)), f = vector(numbers(6, 3));
    const double left = call("spatial_dot", {vector(call("spatial_cross", {a, b}).numbers), f}).number();
    const double right = call("spatial_dot", {b, vector(call("spatial_cross_dual", {a, f}).numbers)}).number();
    EXPECT_NEAR(left, -right, 1e-12);
}

// ---- random numbers ----

std::uint32_t pcg(std::uint32_t v) {
    const std::uint32_t state = v * 747796405u + 2891336453u;
    const std::uint32_t word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

// Draws from one sequence, as a kernel does.
class Sequence {
public:
    explicit Sequence(int seed) : state_(call("rand_init", {i32(seed)}).number()) {}
    Evaluated draw(std::string_view name, const std::vector<Actual>& more = {}) {
        std::vector<Actual> arguments = {{u32_type(), {state_}}};
        arguments.insert(arguments.end(), more.begin(), more.end());
        std::vector<Evaluated> inout;
        const Evaluated result = call(name, arguments, &inout);
        EXPECT_EQ(inout.size(), 1u);
        EXPECT_NE(inout[0].number(), state_);
        state_ = inout[0].number();
        return result;
    }

private:
    double state_;
};

TEST(Random, states_are_pcg_hashes) {
    EXPECT_EQ(call("rand_init", {i32(42)}).number(), pcg(42));
    EXPECT_EQ(call("rand_init", {i32(-1)}).number(), pcg(0xFFFFFFFFu));
    EXPECT_EQ(call("rand_init", {i32(42), i32(7)}).number(), pcg(42 + pcg(7)));
    Sequence sequence(42);
    EXPECT_EQ(sequence.draw("randu").number(), pcg(pcg(42)));
    EXPECT_EQ(sequence.draw("randu").number(), pcg(pcg(pcg(42))));
}

TEST(Random, integers_stay_in_their_range) {
    Sequence sequence(1);
    int seen[5] = {};
    for (int i = 0; i < 500; ++i) {
        const double v = sequence.draw("randi", {i32(-2), i32(3)}).number();
        ASSERT_GE(v, -2);
        ASSERT_LT(v, 3);
        ++seen[static_cast<int>(v) + 2];
    }
    for (int count : seen) EXPECT_GT(count, 60);
}

struct Moments {
    double mean, variance;
};
Moments moments(int n, const std::function<double()>& draw) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
        const double v = draw();
        sum += v;
        squares += v * v;
    }
    return {sum / n, squares / n - sum / n * sum / n};
}

TEST(Random, numbers_have_the_moments_of_their_distribution) {
    Sequence sequence(2);
    const Moments uniform = moments(4000, [&] { return sequence.draw("randf").number(); });
    EXPECT_NEAR(uniform.mean, 0.5, 0.02);
    EXPECT_NEAR(uniform.variance, 1.0 / 12, 0.005);
    const Moments normal = moments(4000, [&] { return sequence.draw("randn").number(); });
    EXPECT_NEAR(normal.mean, 0, 0.06);
    EXPECT_NEAR(normal.variance, 1, 0.08);
    const Moments counts = moments(3000, [&] { return sequence.draw("poisson", {{f32_type(), {6.5}}}).number(); });
    EXPECT_NEAR(counts.mean, 6.5, 0.2);
    EXPECT_NEAR(counts.variance, 6.5, 0.6);
    EXPECT_EQ(sequence.draw("poisson", {{f32_type(), {0.0}}}).number(), 0);
}

TEST(Random, points_lie_where_their_names_say) {
    Sequence sequence(3);
    const auto radius = [](const Evaluated& p) {
        double square = 0;
        for (double v : p.numbers) square += v * v;
        return std::sqrt(square);
    };
    double mean_square = 0;
    for (int i = 0; i < 1000; ++i) {
        EXPECT_NEAR(radius(sequence.draw("sample_unit_ring")), 1, 1e-6);
        EXPECT_NEAR(radius(sequence.draw("sample_unit_sphere_surface")), 1, 1e-6);
        EXPECT_LE(radius(sequence.draw("sample_unit_sphere")), 1 + 1e-6);
        const Evaluated upper = sequence.draw("sample_unit_hemisphere_surface");
        EXPECT_NEAR(radius(upper), 1, 1e-6);
        EXPECT_GT(upper.numbers[2], 0);
        EXPECT_GE(sequence.draw("sample_unit_hemisphere").numbers[2], 0);
        const Evaluated corner = sequence.draw("sample_triangle");
        EXPECT_LE(corner.numbers[0] + corner.numbers[1], 1 + 1e-6);
        for (double v : sequence.draw("sample_unit_cube").numbers) EXPECT_LE(std::abs(v), 0.5);
        const double r = radius(sequence.draw("sample_unit_disk"));
        EXPECT_LE(r, 1 + 1e-6);
        mean_square += r * r / 1000;
    }
    EXPECT_NEAR(mean_square, 0.5, 0.04);  // uniform in area
}

TEST(Random, indices_follow_the_cumulative_distribution) {
    Sequence sequence(4);
    int seen[3] = {};
    for (int i = 0; i < 2000; ++i)
        ++seen[static_cast<int>(sequence.draw("sample_cdf", {array(f32_type(), {0.25, 0.25, 1.0})}).number())];
    EXPECT_NEAR(seen[0], 500, 80);
    EXPECT_EQ(seen[1], 0);
    EXPECT_NEAR(seen[2], 1500, 80);
    EXPECT_EQ(sequence.draw("sample_cdf", {array(f32_type(), {0.0, 0.0})}).number(), 1);
}

TEST(LowerBound, is_that_of_the_standard_library_within_the_range) {
    const Numbers sorted = {-3, 0, 0, 2, 2, 2, 9};
    for (double v = -4; v <= 10; v += 0.5) {
        const double found = double(std::lower_bound(sorted.begin(), sorted.end(), v) - sorted.begin());
        const double expected = std::min(found, double(sorted.size()) - 1);  // above all: the last
        EXPECT_EQ(call("lower_bound", {array(f64_type(), sorted), f64(v)}).number(), expected) << v;
    }
    EXPECT_EQ(call("lower_bound", {array(f64_type(), {}), f64(1)}).number(), 0);
    EXPECT_EQ(call("lower_bound", {array(f64_type(), sorted), i32(3), i32(5), f64(9)}).number(), 4);
}

}  // namespace
}  // namespace weft::builtins::testing
