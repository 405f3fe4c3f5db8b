// Atomics, printing, library calls, debug checks, structs, views, math.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "codegen/harness.h"
#include "ir/walk.h"

namespace weft::test {
namespace {

class Effects : public testing::TestWithParam<int> {
protected:
    Compiled compile(const std::string& text, bool debug = false) {
        codegen::Options options;
        options.lanes = GetParam();
        options.debug = debug;
        return Compiled(text, options);
    }
    std::mt19937 random_{13};
};

INSTANTIATE_TEST_SUITE_P(Lanes, Effects, testing::Values(1, 4, 8, 16), testing::PrintToStringParamName());

TEST_P(Effects, atomics_on_one_place) {
    Compiled kernel = compile(R"(
kernel @one_place(%i32s: array<i32, 1>, %f64s: array<f64, 1>, %halfs: array<f16, 1>, %v: array<vec3<f32>, 1>) tid 1 {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %two = constant 2 : i32
  %i = tid 0
  %a = atomic.add %i32s[%zero], %i
  %b = atomic.max %i32s[%one], %i
  %c = atomic.xor %i32s[%two], %i
  %f = cast %i : f64
  %d = atomic.sub %f64s[%zero], %f
  %e = atomic.min %f64s[%one], %f
  %h = cast %one : f16
  %g = atomic.add %halfs[%zero], %h
  %x = cast %i : f32
  %w = splat %x : vec3<f32>
  %u = atomic.add %v[%zero], %w
  return
}
)");
    for (std::int64_t count = 0; count <= 40; ++count) {
        std::vector<std::int32_t> integers{5, -3, 0};
        std::vector<double> doubles{1.0, 1e9};
        std::vector<std::uint16_t> halfs{0};
        std::vector<float> vectors{1, 2, 3};
        ArrayView v = view(vectors, {1});
        v.strides[0] = 12;
        kernel.run(count, view(integers), view(doubles), view(halfs), v);
        std::int32_t sum = static_cast<std::int32_t>(count * (count - 1) / 2), parity = 0;
        for (int i = 0; i < count; ++i) parity ^= i;
        EXPECT_EQ(integers,
                  (std::vector<std::int32_t>{5 + sum, count ? static_cast<std::int32_t>(count - 1) : -3, parity}));
        EXPECT_EQ(doubles, (std::vector<double>{1.0 - sum, count ? 0.0 : 1e9}));
        EXPECT_EQ(read_scalar(Scalar::f16, halfs.data()).f, static_cast<double>(count));
        EXPECT_EQ(vectors, (std::vector<float>{1.0f + static_cast<float>(sum), 2.0f + static_cast<float>(sum),
                                               3.0f + static_cast<float>(sum)}));
    }
}

TEST_P(Effects, atomics_give_the_old_value_in_thread_order) {
    Compiled kernel = compile(R"(
kernel @tickets(%counters: array<i32, 1>, %y: array<i32, 1>) tid 1 {
  %one = constant 1 : i32
  %three = constant 3 : i32
  %i = tid 0
  %j = rem %i, %three
  %t = atomic.add %counters[%j], %one
  store %y[%i], %t
  return
}
)");
    std::vector<std::int32_t> counters(3), y(40, -1);
    kernel.run(37, view(counters), view(y));
    for (int i = 0; i < 37; ++i) EXPECT_EQ(y[static_cast<std::size_t>(i)], i / 3);
    EXPECT_EQ(counters, (std::vector<std::int32_t>{13, 12, 12}));
}

TEST_P(Effects, compare_and_swap_and_exchange) {
    Compiled kernel = compile(R"(
kernel @swap(%x: array<f32, 1>, %y: array<f32, 1>, %z: array<i32, 1>) tid 1 {
  %i = tid 0
  %zero = constant 0 : i32
  %f = cast %i : f32
  %four = constant 4 : f32
  %a = atomic.cas %x[%i], %four, %f
  store %y[%i], %a
  %b = atomic.exch %z[%zero], %i
  return
}
)");
    std::vector<float> x(20, 4.0f), y(20);
    for (std::size_t i = 0; i < 20; i += 2) x[i] = 5.0f;
    std::vector<std::int32_t> z{-1};
    kernel.run(19, view(x), view(y), view(z));
    for (std::size_t i = 0; i < 19; ++i) {
        EXPECT_EQ(y[i], i % 2 ? 4.0f : 5.0f);
        EXPECT_EQ(x[i], i % 2 ? static_cast<float>(i) : 5.0f);
    }
    EXPECT_EQ(z[0], 18);
}

TEST_P(Effects, printing_runs_over_active_lanes_in_order) {
    Compiled kernel = compile(R"(
kernel @talk(%x: array<f32, 1>) tid 1 {
  %i = tid 0
  %two = constant 2 : i32
  %zero = constant 0 : i32
  %r = rem %i, %two
  %odd = cmp.ne %r, %zero
  if %odd {
    %v = load %x[%i]
    print "%d has %g\n", %i, %v
  }
  return
}
)");
    Compiled::printed().clear();
    std::vector<float> x(20);
    for (std::size_t i = 0; i < 20; ++i) x[i] = static_cast<float>(i) / 2;
    kernel.run(11, view(x));
    EXPECT_EQ(Compiled::printed(),
              (std::vector<std::string>{"1 has 0.5\n", "3 has 1.5\n", "5 has 2.5\n", "7 has 3.5\n", "9 has 4.5\n"}));
}

TEST_P(Effects, library_functions_are_called_for_active_lanes) {
    Compiled kernel = compile(R"(
kernel @library(%x: array<f32, 1>, %v: array<vec3<f32>, 1>, %y: array<f32, 1>) tid 1 {
  %i = tid 0
  %a = load %x[%i]
  %zero = constant 0 : f32
  %up = constant (0, 0, 1) : vec3<f32>
  %c = cmp.gt %a, %zero
  if %c {
    %b = call_library "test_square"(%a) pure : f32
    %w = load %v[%i]
    %cross = call_library "test_cross"(%w, %up) pure : vec3<f32>
    store %v[%i], %cross
    %s = call_library "test_sum"(%x) : f32
    %t = add %b, %s
    store %y[%i], %t
  }
  return
}
)");
    std::vector<float> x(21), y(21, -1.0f), v(63);
    for (std::size_t i = 0; i < 21; ++i) x[i] = static_cast<float>(i) - 9.0f;
    for (std::size_t i = 0; i < 63; ++i) v[i] = static_cast<float>(i);
    std::vector<float> expected = v;
    float sum = 0;
    for (float a : x) sum += a;
    ArrayView vectors = view(v, {21});
    vectors.strides[0] = 12;
    kernel.run(21, view(x), vectors, view(y));
    for (std::size_t i = 0; i < 21; ++i) {
        if (x[i] > 0) {
            float a = expected[3 * i], b = expected[3 * i + 1];
            expected[3 * i] = b, expected[3 * i + 1] = -a, expected[3 * i + 2] = 0;
        }
        EXPECT_EQ(y[i], x[i] > 0 ? x[i] * x[i] + sum : -1.0f);
    }
    EXPECT_EQ(v, expected);
}

TEST_P(Effects, structs_members_and_components) {
    Compiled kernel = compile(R"(
struct @Particle = "Particle" "test.Particle" { position: vec3<f32>, alive: bool, mass: f64 }
struct @Setup = "Setup" "test.Setup" { gain: f32, weights: array<f32, 1> }
kernel @structs(%p: array<struct @Particle, 1>, %setup: struct @Setup, %y: array<f64, 1>) tid 1 {
  %i = tid 0
  %one = constant 1 : i32
  %q = load %p[%i]
  %m = extract %q[2]
  %alive = extract %q[1]
  %dead = invert %alive
  %q2 = insert %q[1], %dead
  %gain = extract %setup[0]
  %weights = extract %setup[1]
  %w = load %weights[%i]
  %g = mul %gain, %w
  %gd = cast %g : f64
  %r = mul %m, %gd
  store %y[%i], %r
  store %p[%i], %q2
  %positions = member %p[0]
  %scalars = components %positions
  %height = load %scalars[%i, %one]
  store %scalars[%i, %one], %gain
  %n = dim %scalars[1]
  %nd = cast %n : f64
  %hd = cast %height : f64
  %t = add %hd, %nd
  %old = atomic.add %y[%i], %t
  return
}
)");
    struct Particle {
        float position[3];
        bool alive;
        double mass;
    };
    static_assert(sizeof(Particle) == 24);
    struct Setup {
        float gain;
        ArrayView weights;
    };
    std::vector<Particle> p(20);
    std::vector<float> weights(20);
    std::vector<double> y(20);
    for (std::size_t i = 0; i < 20; ++i) {
        auto f = static_cast<float>(i);
        p[i] = {{f, f + 1, f + 2}, i % 3 == 0, 0.5 * f};
        weights[i] = f * 3;
    }
    auto before = p;
    Setup setup{2.0f, view(weights)};
    kernel.run(19, view(p), setup, view(y));
    for (std::size_t i = 0; i < 19; ++i) {
        EXPECT_EQ(p[i].alive, !before[i].alive);
        EXPECT_EQ(p[i].mass, before[i].mass);
        EXPECT_EQ(p[i].position[0], before[i].position[0]);
        EXPECT_EQ(p[i].position[1], 2.0f);
        EXPECT_EQ(y[i], before[i].mass * 2.0 * weights[i] + before[i].position[1] + 3.0);
    }
    EXPECT_EQ(p[19].position[1], before[19].position[1]);
}

TEST_P(Effects, views_gradients_and_missing_arrays) {
    Compiled kernel = compile(R"(
kernel @views(%x: array<f32, 2>, %none: array<f32, 1>, %y: array<f32, 1>) tid 1 {
  %i = tid 0
  %two = constant 2 : i32
  %row = view %x[%i]
  %a = load %row[%two]
  %gradient = grad_of %x
  %grow = view %gradient[%i]
  %old = load %grow[%two]
  %sum = add %a, %old
  store %grow[%two], %sum
  %missing = is_null %none
  %r = if %missing {
    yield %sum
  } else {
    %v = load %none[%i]
    yield %v
  }
  store %y[%i], %r
  return
}
)");
    std::vector<float> x(60), g(60), y(20);
    for (std::size_t i = 0; i < 60; ++i) x[i] = static_cast<float>(i), g[i] = 1000.0f + static_cast<float>(i);
    auto before = g;
    ArrayView array = view(x, {20, 3});
    array.grad = g.data();
    kernel.run(19, array, ArrayView{}, view(y));
    for (std::size_t i = 0; i < 19; ++i) {
        EXPECT_EQ(y[i], x[3 * i + 2] + before[3 * i + 2]);
        EXPECT_EQ(g[3 * i + 2], y[i]);
        EXPECT_EQ(g[3 * i], before[3 * i]);
    }
}

TEST_P(Effects, debug_checks_report_and_keep_away_from_memory) {
    const std::string text = R"(
kernel @checked(%at: array<i32, 1>, %x: array<f32, 2>, %y: array<f32, 1>, %none: array<f32, 1>, %d: i32) tid 1 {
  %i = tid 0
  %j = load %at[%i]
  %v = load %x[%j, %i]
  store %y[%j], %v
  %zero = constant 0 : i32
  %q = div %i, %d
  %ok = cmp.lt %i, %j
  assert "out of order", %ok
  %missing = is_null %none
  %there = invert %missing
  if %there {
    store %none[%i], %v
  }
  return
}
)";
    Compiled kernel = compile(text, true);
    EXPECT_EQ(kernel.entry().cpu().lanes, 1);
    std::vector<std::int32_t> at{1, 2, 3, -1};
    std::vector<float> x(12, 2.0f), y(3, 0.0f);
    Compiled::faults().clear();
    kernel.run(3, view(at), view(x, {3, 4}), view(y), ArrayView{}, std::int32_t{2});
    // thread 2 reads row 3 of 3, writes element 3 of 3
    ASSERT_EQ(Compiled::faults().size(), 2u);
    EXPECT_EQ(Compiled::faults()[0].kind, static_cast<int>(FaultKind::bounds));
    EXPECT_EQ(Compiled::faults()[0].thread, 2);
    EXPECT_EQ(Compiled::faults()[0].index, 3);
    EXPECT_EQ(Compiled::faults()[0].size, 3);
    EXPECT_EQ(Compiled::faults()[0].axis, 0);
    EXPECT_EQ(y, (std::vector<float>{0, 2, 2}));

    Compiled::faults().clear();
    kernel.run_part({4}, 3, 4, view(at), view(x, {3, 4}), view(y), ArrayView{}, std::int32_t{0});
    std::vector<int> kinds;
    for (const FaultReport& fault : Compiled::faults()) kinds.push_back(fault.kind);
    int bounds = static_cast<int>(FaultKind::bounds), division = static_cast<int>(FaultKind::division);
    EXPECT_EQ(kinds, (std::vector<int>{bounds, bounds, division, static_cast<int>(FaultKind::assertion)}));
    EXPECT_EQ(Compiled::faults()[0].index, -1);
    // A check is told by the number of its operation; the assert is the last but the return.
    const auto module = ir::parse(text);
    const auto operations = ir::numbered_operations(*module->functions.front());
    const std::int32_t number = kernel.entry().sites.at(static_cast<std::size_t>(Compiled::faults().back().site));
    EXPECT_EQ(operations.at(static_cast<std::size_t>(number))->text, "out of order");
}

struct MathCase {
    const char* op;
    double (*reference)(double);
    double low, high;
};

double clamped_asin(double x) { return std::asin(std::clamp(x, -1.0, 1.0)); }
double clamped_acos(double x) { return std::acos(std::clamp(x, -1.0, 1.0)); }

// Units in the last place between a result and the true value.
template <typename T>
double ulps(T got, double reference) {
    if (std::isnan(got) && std::isnan(reference)) return 0;
    T rounded = static_cast<T>(reference);
    if (got == rounded) return 0;
    double spacing =
        std::max(std::abs(static_cast<double>(std::nextafter(rounded, std::numeric_limits<T>::infinity())) -
                          static_cast<double>(rounded)),
                 static_cast<double>(std::numeric_limits<T>::denorm_min()));
    return std::abs(static_cast<double>(got) - reference) / spacing;
}

TEST_P(Effects, math_functions_are_accurate) {
    const MathCase cases[] = {
        // asin and acos clamp their argument: 2.5 counts as 1
        {"sin", std::sin, -100, 100},     {"cos", std::cos, -100, 100},  {"tan", std::tan, -1.5, 1.5},
        {"asin", clamped_asin, -1, 1},    {"acos", clamped_acos, -1, 1}, {"atan", std::atan, -20, 20},
        {"sinh", std::sinh, -5, 5},       {"cosh", std::cosh, -5, 5},    {"tanh", std::tanh, -3, 3},
        {"exp", std::exp, -20, 20},       {"log", std::log, 1e-3, 1e3},  {"log2", std::log2, 1e-3, 1e3},
        {"log10", std::log10, 1e-3, 1e3}, {"cbrt", std::cbrt, -50, 50},  {"sqrt", std::sqrt, 0, 50},
        {"erf", std::erf, -3, 3},         {"erfc", std::erfc, -3, 5},    {"floor", std::floor, -9, 9},
        {"ceil", std::ceil, -9, 9},       {"trunc", std::trunc, -9, 9},  {"round", std::round, -9, 9},
        {"rint", std::rint, -9, 9},
    };
    for (const MathCase& test : cases) {
        auto check = [&]<typename T>(T, const char* type) {
            std::string array = std::string("array<") + type + ", 1>";
            Compiled kernel = compile("kernel @math(%x: " + array + ", %y: " + array +
                                      ") tid 1 {\n  %i = tid 0\n  %a = load %x[%i]\n  %b = " + test.op +
                                      " %a\n  store %y[%i], %b\n  return\n}\n");
            std::uniform_real_distribution<double> distribution(test.low, test.high);
            std::vector<T> x(203), y(203);
            for (T& a : x) a = static_cast<T>(distribution(random_));
            x[0] = static_cast<T>(2.5);
            x[1] = static_cast<T>(-0.5);
            kernel.run(203, view(x), view(y));
            for (std::size_t i = 0; i < 203; ++i)
                EXPECT_LE(ulps(y[i], test.reference(x[i])), 2.0) << test.op << "(" << x[i] << ") " << type;
        };
        check(float{}, "f32");
        check(double{}, "f64");
    }
}

TEST_P(Effects, powers_remainders_and_angles) {
    Compiled kernel = compile(R"(
kernel @two(%x: array<f64, 1>, %y: array<f64, 1>, %p: array<f64, 1>, %r: array<f64, 1>, %a: array<f64, 1>) tid 1 {
  %i = tid 0
  %u = load %x[%i]
  %v = load %y[%i]
  %b = pow %u, %v
  %c = rem %u, %v
  %d = atan2 %u, %v
  store %p[%i], %b
  store %r[%i], %c
  store %a[%i], %d
  return
}
)");
    std::vector<double> x, y;
    for (double u : {-3.5, -2.0, -0.0, 0.0, 0.5, 1.0, 7.25})
        for (double v : {-2.0, -0.3, 0.7, 1.0, 2.0, 3.0}) x.push_back(u), y.push_back(v);
    std::vector<double> p(x.size()), r(x.size()), a(x.size());
    kernel.run(static_cast<std::int64_t>(x.size()), view(x), view(y), view(p), view(r), view(a));
    for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_LE(ulps(p[i], std::pow(x[i], y[i])), 1.0) << x[i] << " ** " << y[i];
        EXPECT_EQ(r[i], std::fmod(x[i], y[i])) << x[i] << " % " << y[i];
        EXPECT_LE(ulps(a[i], std::atan2(x[i], y[i])), 1.0);
    }
}

TEST_P(Effects, inverse_error_functions_invert) {
    Compiled kernel = compile(R"(
kernel @inverse(%x: array<f64, 1>, %y: array<f64, 1>, %z: array<f64, 1>, %f: array<f32, 1>) tid 1 {
  %i = tid 0
  %a = load %x[%i]
  %b = erfinv %a
  %c = erfcinv %a
  store %y[%i], %b
  store %z[%i], %c
  %d = cast %a : f32
  %e = erfinv %d
  store %f[%i], %e
  return
}
)");
    std::vector<double> x{0.0,  1e-300,   1e-20,  1e-9,      0.001,     0.1,       0.3,         0.5, 0.7,
                          0.9,  0.99,     0.9999, 0.9999999, 1 - 1e-12, 1 - 1e-15, 1.0,         1.5, 1.999,
                          -0.4, -0.99999, -1.0,   -1.5,      2.0,       3.0,       std::nan("")};
    std::vector<double> y(x.size()), z(x.size());
    std::vector<float> f(x.size());
    kernel.run(static_cast<std::int64_t>(x.size()), view(x), view(y), view(z), view(f));
    for (std::size_t i = 0; i < x.size(); ++i) {
        double a = x[i];
        if (std::abs(a) < 1) {
            // An error of one ulp of the result changes erf by its slope times that.
            double slope = 2 / std::sqrt(M_PI) * std::exp(-y[i] * y[i]);
            double tolerance = 4 * 2.3e-16 * std::max(std::abs(y[i]) * slope, std::abs(a));
            if (std::abs(a) < 0.9) {
                EXPECT_NEAR(std::erf(y[i]), a, tolerance) << a;
            } else {
                EXPECT_NEAR(std::erfc(std::abs(y[i])), 1 - std::abs(a), 1e-14 * (1 - std::abs(a))) << a;
            }
        }
        if (a > 0 && a < 2) {
            EXPECT_NEAR(std::erfc(z[i]) / a, 1.0, 2e-13) << a;
        }
        if (a == 1.0) {
            EXPECT_EQ(y[i], HUGE_VAL);
        }
        if (a == -1.0) {
            EXPECT_EQ(y[i], -HUGE_VAL);
        }
        if (a == 0.0) {
            EXPECT_EQ(z[i], HUGE_VAL);
        }
        if (a == 2.0) {
            EXPECT_EQ(z[i], -HUGE_VAL);
        }
        if (std::abs(a) > 1 || std::isnan(a)) {
            EXPECT_TRUE(std::isnan(y[i])) << a;
        }
        if (a < 0 || a > 2 || std::isnan(a)) {
            EXPECT_TRUE(std::isnan(z[i])) << a;
        }
        if (std::abs(a) < 0.9999) {
            // The f64 result, corrected for the argument that f32 rounds to.
            double rounded = static_cast<float>(a), slope = 2 / std::sqrt(M_PI) * std::exp(-y[i] * y[i]);
            EXPECT_LE(ulps(f[i], y[i] - (std::erf(y[i]) - rounded) / slope), 4.0) << a;
        }
    }
}

TEST(SameBits, every_lane_count_gives_the_same_transcendentals) {
    std::vector<float> x(37), reference;
    for (std::size_t i = 0; i < 37; ++i) x[i] = 0.1f + 0.37f * static_cast<float>(i);
    for (int lanes : {1, 4, 8, 16, 32}) {
        codegen::Options options;
        options.lanes = lanes;
        Compiled kernel(R"(
kernel @chain(%x: array<f32, 1>, %y: array<f32, 1>) tid 1 {
  %i = tid 0
  %a = load %x[%i]
  %b = sin %a
  %c = exp %b
  %d = pow %a, %c
  %e = log %d
  store %y[%i], %e
  return
}
)",
                        options);
        std::vector<float> y(37);
        kernel.run(37, view(x), view(y));
        if (reference.empty()) reference = y;
        EXPECT_EQ(y, reference) << lanes;
    }
}

TEST(LineInformation, instructions_carry_the_users_lines) {
    codegen::Options options;
    options.line_info = true;
    Compiled kernel(
        "kernel @k(%x: array<f32, 1>) tid 1 {\n  %i = tid 0\n  %v = load %x[%i]\n  store %x[%i], %v\n  return\n}\n",
        options);
    EXPECT_NE(kernel.llvm_text().find("DISubprogram"), std::string::npos);
    EXPECT_NE(kernel.llvm_text().find("!dbg"), std::string::npos);
    std::vector<float> x(9, 2.0f);
    kernel.run(9, view(x));
}

}  // namespace
}  // namespace weft::test
