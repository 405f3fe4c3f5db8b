// Kernels without control flow, at every lane count and every count of threads around it.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codegen/harness.h"

namespace weft::test {
namespace {

class StraightLine : public testing::TestWithParam<int> {
protected:
    Compiled compile(const std::string& text, bool dense = true) {
        codegen::Options options;
        options.lanes = GetParam();
        options.dense = dense;
        return Compiled(text, options);
    }
    std::vector<float> numbers(std::size_t count) {
        std::uniform_real_distribution<float> distribution(-4.0f, 4.0f);
        std::vector<float> result(count);
        for (float& x : result) x = distribution(random_);
        return result;
    }
    std::mt19937 random_{7};
};

INSTANTIATE_TEST_SUITE_P(Lanes, StraightLine, testing::Values(1, 4, 8, 16), testing::PrintToStringParamName());

const char* kSaxpy = R"(
kernel @saxpy(%a: f32, %x: array<f32, 1>, %y: array<f32, 1>) tid 1 {
  %i = tid 0
  %xi = load %x[%i]
  %yi = load %y[%i]
  %p = mul %a, %xi
  %s = add %p, %yi
  store %y[%i], %s
  return
}
)";

TEST_P(StraightLine, saxpy_touches_exactly_its_threads) {
    Compiled kernel = compile(kSaxpy);
    EXPECT_EQ(kernel.entry().cpu().lanes, GetParam());
    for (std::int64_t count = 0; count <= 40; ++count) {
        auto x = numbers(48), y = numbers(48), expected = y;
        for (std::int64_t i = 0; i < count; ++i) {
            auto n = static_cast<std::size_t>(i);
            expected[n] = std::fma(2.5f, x[n], y[n]);
        }
        kernel.run(count, 2.5f, view(x), view(y));
        EXPECT_EQ(y, expected) << count << " threads";
    }
}

TEST_P(StraightLine, a_launch_may_be_cut_anywhere) {
    Compiled kernel = compile(kSaxpy);
    auto x = numbers(64), y = numbers(64), expected = y;
    for (std::size_t i = 0; i < 64; ++i) expected[i] = std::fma(2.5f, x[i], y[i]);
    for (auto [begin, end] : {std::pair{0, 3}, {3, 20}, {20, 20}, {20, 61}, {61, 64}})
        kernel.run_part({64}, begin, end, 2.5f, view(x), view(y));
    EXPECT_EQ(y, expected);
}

TEST_P(StraightLine, arrays_with_gaps_work_in_the_strided_variant) {
    Compiled kernel = compile(kSaxpy, false);
    auto x = numbers(200), y = numbers(200), expected = y;
    for (std::size_t i = 0; i < 37; ++i) expected[2 * i] = std::fma(0.5f, x[36 * 3 - 3 * i], expected[2 * i]);
    ArrayView every_third = view(x), every_second = view(y);
    every_third.data = x.data() + 36 * 3;
    every_third.strides[0] = -12;
    every_second.strides[0] = 8;
    kernel.run(37, 0.5f, every_third, every_second);
    EXPECT_EQ(y, expected);
}

TEST_P(StraightLine, shifted_reversed_and_spread_indices) {
    Compiled kernel = compile(R"(
kernel @indices(%x: array<f32, 1>, %y: array<f32, 1>, %n: i32) tid 1 {
  %one = constant 1 : i32
  %two = constant 2 : i32
  %i = tid 0
  %next = add %i, %one
  %back = sub %n, %i
  %twice = mul %i, %two
  %a = load %x[%next]
  %b = load %x[%back]
  %c = load %x[%twice]
  %d = sub %a, %b
  %e = mul %d, %c
  store %y[%back], %e
  return
}
)");
    for (std::int64_t count = 0; count <= 40; ++count) {
        auto x = numbers(100), y = numbers(100), expected = y;
        std::int32_t last = static_cast<std::int32_t>(count);
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            std::size_t back = static_cast<std::size_t>(last) - i;
            expected[back] = (x[i + 1] - x[back]) * x[2 * i];
        }
        kernel.run(count, view(x), view(y), last);
        EXPECT_EQ(y, expected) << count;
    }
}

TEST_P(StraightLine, gather_and_scatter) {
    Compiled kernel = compile(R"(
kernel @permute(%at: array<i32, 1>, %x: array<f64, 1>, %y: array<f64, 1>) tid 1 {
  %i = tid 0
  %j = load %at[%i]
  %v = load %x[%j]
  %w = add %v, %v
  store %y[%j], %w
  return
}
)");
    for (std::int64_t count = 0; count <= 40; ++count) {
        std::vector<std::int32_t> at(40);
        for (int i = 0; i < 40; ++i) at[static_cast<std::size_t>(i)] = (i * 7) % 40;
        std::vector<double> x(40), y(40, -1.0), expected(40, -1.0);
        for (std::size_t i = 0; i < 40; ++i) x[i] = 0.1 * static_cast<double>(i);
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
            expected[static_cast<std::size_t>(at[i])] = 2 * x[static_cast<std::size_t>(at[i])];
        kernel.run(count, view(at), view(x), view(y));
        EXPECT_EQ(y, expected);
    }
}

TEST_P(StraightLine, packed_vectors_of_every_length_and_type) {
    struct Case {
        const char* name;
        std::size_t bytes;
    };
    for (auto [scalar, bytes] : {Case{"f32", 4}, {"f64", 8}, {"i16", 2}, {"u8", 1}}) {
        for (int n : {2, 3, 4, 5, 9}) {
            std::string type = "vec" + std::to_string(n) + "<" + scalar + ">", array = "array<" + type + ", 1>";
            // Reads an element, turns the components round, writes the neighbour.
            std::string text = "kernel @turn(%x: " + array + ", %y: " + array +
                               ") tid 1 {\n  %one = constant 1 : i32\n  %i = tid 0\n"
                               "  %j = add %i, %one\n  %v = load %x[%i]\n";
            for (int c = 0; c < n; ++c)
                text += "  %c" + std::to_string(c) + " = extract %v[" + std::to_string(c) + "]\n";
            text += "  %w = make ";
            for (int c = n; c-- > 0;) text += "%c" + std::to_string(c) + (c ? ", " : "");
            text += " : " + type + "\n  store %y[%j], %w\n  return\n}\n";
            Compiled kernel = compile(text);
            std::size_t size = bytes * static_cast<std::size_t>(n);
            for (std::int64_t count = 0; count <= 40; ++count) {
                std::vector<unsigned char> x(42 * size), y(42 * size, 0xee), expected = y;
                for (unsigned char& byte : x) byte = static_cast<unsigned char>(random_());
                for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
                    for (std::size_t c = 0; c < static_cast<std::size_t>(n); ++c)
                        std::memcpy(&expected[(i + 1) * size + c * bytes],
                                    &x[i * size + (static_cast<std::size_t>(n) - 1 - c) * bytes], bytes);
                ArrayView from = view(x, {42}), to = view(y, {42});
                from.strides[0] = to.strides[0] = static_cast<std::int64_t>(size);
                kernel.run(count, from, to);
                ASSERT_EQ(y, expected) << type << " " << count << " threads";
            }
        }
    }
}

TEST_P(StraightLine, two_and_three_dimensional_grids_with_short_rows) {
    Compiled flat = compile(R"(
kernel @plane(%y: array<i32, 2>) tid 2 {
  %hundred = constant 100 : i32
  %i = tid 0
  %j = tid 1
  %a = mul %i, %hundred
  %b = add %a, %j
  store %y[%i, %j], %b
  return
}
)");
    Compiled solid = compile(R"(
kernel @solid(%y: array<i32, 3>) tid 3 {
  %hundred = constant 100 : i32
  %i = tid 0
  %j = tid 1
  %k = tid 2
  %a = mul %i, %hundred
  %b = add %a, %j
  %c = mul %b, %hundred
  %d = add %c, %k
  store %y[%i, %j, %k], %d
  return
}
)");
    for (std::int64_t columns : {1, 3, 8, 19}) {
        for (std::int64_t rows : {1, 4}) {
            std::int64_t count = rows * columns;
            for (std::int64_t begin = 0; begin <= count; ++begin) {
                std::vector<std::int32_t> y(static_cast<std::size_t>(count), -1), expected(y);
                std::int64_t end = begin + (count - begin + 1) / 2;
                for (std::int64_t t = begin; t < end; ++t)
                    expected[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(t / columns * 100 + t % columns);
                flat.run_part({rows, columns}, begin, end, view(y, {rows, columns}));
                ASSERT_EQ(y, expected) << rows << " x " << columns << " from " << begin;
            }
            std::int64_t depth = 3, all = depth * count;
            std::vector<std::int32_t> y(static_cast<std::size_t>(all), -1), expected(y);
            for (std::int64_t t = 2; t < all; ++t)
                expected[static_cast<std::size_t>(t)] =
                    static_cast<std::int32_t>((t / count * 100 + t / columns % rows) * 100 + t % columns);
            solid.run_part({depth, rows, columns}, 2, all, view(y, {depth, rows, columns}));
            ASSERT_EQ(y, expected);
        }
    }
}

TEST_P(StraightLine, a_uniform_store_keeps_the_last_thread) {
    Compiled kernel = compile(R"(
kernel @last(%y: array<i32, 1>) tid 1 {
  %zero = constant 0 : i32
  %i = tid 0
  store %y[%zero], %i
  return
}
)");
    for (std::int64_t count = 1; count <= 40; ++count) {
        std::vector<std::int32_t> y{-1};
        kernel.run(count, view(y));
        EXPECT_EQ(y[0], count - 1);
    }
}

TEST_P(StraightLine, matrices_and_dot_products_are_fused_left_to_right) {
    Compiled kernel = compile(R"(
kernel @algebra(%m: array<mat3x3<f32>, 1>, %v: array<vec3<f32>, 1>, %y: array<vec3<f32>, 1>, %d: array<f32, 1>) tid 1 {
  %i = tid 0
  %a = load %m[%i]
  %b = load %v[%i]
  %c = matmul %a, %b
  %t = transpose %a
  %e = matmul %c, %t
  store %y[%i], %e
  %p = mul %b, %b
  %s = reduce_add %p
  store %d[%i], %s
  return
}
)");
    auto m = numbers(40 * 9), v = numbers(40 * 3);
    std::vector<float> y(40 * 3), d(40);
    ArrayView matrices = view(m, {37}), vectors = view(v, {37}), results = view(y, {37});
    matrices.strides[0] = 36;
    vectors.strides[0] = results.strides[0] = 12;
    kernel.run(37, matrices, vectors, results, view(d));
    for (std::size_t i = 0; i < 37; ++i) {
        float* a = &m[9 * i];
        float* b = &v[3 * i];
        float c[3];
        for (int r = 0; r < 3; ++r) c[r] = std::fma(a[3 * r + 2], b[2], std::fma(a[3 * r + 1], b[1], a[3 * r] * b[0]));
        for (int r = 0; r < 3; ++r)
            EXPECT_EQ(y[3 * i + static_cast<std::size_t>(r)],
                      std::fma(c[2], a[3 * r + 2], std::fma(c[1], a[3 * r + 1], c[0] * a[3 * r])));
        EXPECT_EQ(d[i], std::fma(b[2], b[2], std::fma(b[1], b[1], b[0] * b[0])));
    }
}

TEST_P(StraightLine, dynamic_component_access) {
    Compiled kernel = compile(R"(
kernel @components(%at: array<i32, 1>, %m: mat2x3<f32>, %y: array<vec3<f32>, 1>) tid 1 {
  %two = constant 2 : i32
  %three = constant 3 : i32
  %i = tid 0
  %j = load %at[%i]
  %r = rem %j, %two
  %c = rem %j, %three
  %row = extract_at %m[%r]
  %entry = extract_at %m[%r, %c]
  %v = insert_at %row[%c], %entry
  %w = add %v, %row
  store %y[%i], %w
  return
}
)");
    std::vector<std::int32_t> at(21);
    for (int i = 0; i < 21; ++i) at[static_cast<std::size_t>(i)] = i * 5;
    float m[6] = {1, 2, 3, 4, 5, 6};
    struct Matrix {
        float entries[6];
    } matrix;
    std::memcpy(&matrix, m, sizeof m);
    std::vector<float> y(63);
    ArrayView results = view(y, {21});
    results.strides[0] = 12;
    kernel.run(21, view(at), matrix, results);
    for (std::size_t i = 0; i < 21; ++i)
        for (std::size_t c = 0; c < 3; ++c)
            EXPECT_EQ(y[3 * i + c], 2 * m[3 * (static_cast<std::size_t>(at[i]) % 2) + c]);
}

TEST_P(StraightLine, integer_division_never_traps) {
    for (const char* type : {"i32", "i64", "u32", "i8"}) {
        std::string array = std::string("array<") + type + ", 1>";
        std::string text =
            "kernel @divide(%a: " + array + ", %b: " + array + ", %q: " + array + ", %r: " + array +
            ") tid 1 {\n"
            "  %i = tid 0\n  %x = load %a[%i]\n  %y = load %b[%i]\n  %d = div %x, %y\n  %m = rem %x, %y\n"
            "  store %q[%i], %d\n  store %r[%i], %m\n  return\n}\n";
        Compiled kernel = compile(text);
        auto check = [&]<typename T>(T) {
            using Limits = std::numeric_limits<T>;
            std::vector<T> a, b;
            for (T x : {T(0), T(1), T(7), T(-7), T(100), Limits::max(), Limits::min(), T(Limits::max() - 1)})
                for (T y : {T(0), T(1), T(2), T(-1), T(-3), T(3), T(10), Limits::max(), Limits::min()})
                    a.push_back(x), b.push_back(y);
            std::vector<T> q(a.size()), r(a.size());
            kernel.run(static_cast<std::int64_t>(a.size()), view(a), view(b), view(q), view(r));
            for (std::size_t i = 0; i < a.size(); ++i) {
                bool none = b[i] == 0 || (Limits::is_signed && b[i] == T(-1) && a[i] == Limits::min());
                EXPECT_EQ(q[i], none ? T(0) : T(a[i] / b[i])) << type << " " << +a[i] << " / " << +b[i];
                EXPECT_EQ(r[i], none ? T(0) : T(a[i] % b[i])) << type << " " << +a[i] << " % " << +b[i];
            }
        };
        if (std::string(type) == "i32") check(std::int32_t{});
        if (std::string(type) == "i64") check(std::int64_t{});
        if (std::string(type) == "u32") check(std::uint32_t{});
        if (std::string(type) == "i8") check(std::int8_t{});
    }
}

TEST_P(StraightLine, casts_agree_with_the_constant_folder) {
    std::vector<double> interesting{0.0,       -0.0,         1.5,      -1.5,      2.5,          1e-8,
                                    65504.0,   65520.0,      1e5,      -1e5,      3e9,          -3e9,
                                    1e19,      -1e19,        1e300,    0.1,       5.96e-8,      2.98e-8,
                                    1.0 / 3.0, std::nan(""), HUGE_VAL, -HUGE_VAL, 1.0009765625, 1.00048828125001};
    std::size_t count = interesting.size();
    for (const ScalarInfo& from : all_scalars()) {
        // One kernel casts to every type.
        std::string parameters, body;
        for (const ScalarInfo& to : all_scalars()) {
            std::string name = std::string("to_") + to.ir;
            parameters += ", %" + name + ": array<" + to.ir + ", 1>";
            body += "  %as_" + name + " = cast %a : " + to.ir + "\n  store %" + name + "[%i], %as_" + name + "\n";
        }
        Compiled kernel = compile(std::string("kernel @cast(%x: array<") + from.ir + ", 1>" + parameters +
                                  ") tid 1 {\n  %i = tid 0\n  %a = load %x[%i]\n" + body + "  return\n}\n");
        auto array = [&](std::vector<unsigned char>& bytes, const ScalarInfo& scalar) {
            bytes.assign(count * static_cast<std::size_t>(scalar.bytes()), 0);
            ArrayView result = view(bytes, {static_cast<std::int64_t>(count)});
            result.strides[0] = scalar.bytes();
            return result;
        };
        auto at = [&](std::vector<unsigned char>& bytes, const ScalarInfo& scalar, std::size_t i) {
            return &bytes[i * static_cast<std::size_t>(scalar.bytes())];
        };
        std::vector<unsigned char> x;
        std::vector<std::vector<unsigned char>> results(all_scalars().size());
        std::vector<ArrayView> arrays{array(x, from)};
        for (std::size_t i = 0; i < count; ++i)
            write_scalar(from.id, convert(Number::real(interesting[i]), Scalar::f64, from.id), at(x, from, i));
        for (const ScalarInfo& to : all_scalars())
            arrays.push_back(array(results[static_cast<std::size_t>(to.id)], to));
        kernel.run_on_arrays(static_cast<std::int64_t>(count), arrays);
        for (const ScalarInfo& to : all_scalars()) {
            for (std::size_t i = 0; i < count; ++i) {
                Number expected = convert(read_scalar(from.id, at(x, from, i)), from.id, to.id);
                Number got = read_scalar(to.id, at(results[static_cast<std::size_t>(to.id)], to, i));
                if (expected.is_float && std::isnan(expected.f)) {
                    EXPECT_TRUE(std::isnan(got.f)) << from.ir << " to " << to.ir;
                } else {
                    EXPECT_EQ(got, expected) << from.ir << " to " << to.ir << " of " << interesting[i];
                }
            }
        }
    }
}

TEST_P(StraightLine, half_arithmetic_rounds_once) {
    for (const char* type : {"f16", "bf16"}) {
        Scalar scalar = std::string(type) == "f16" ? Scalar::f16 : Scalar::bf16;
        std::string array = std::string("array<") + type + ", 1>";
        Compiled kernel =
            compile("kernel @half(%x: " + array + ", %y: " + array + ", %z: " + array + ") tid 1 {\n  %i = tid 0\n" +
                    "  %a = load %x[%i]\n  %b = load %y[%i]\n  %p = mul %a, %b\n  %s = add %p, %a\n  store %z[%i], "
                    "%s\n  return\n}\n");
        std::vector<std::uint16_t> x(100), y(100), z(100);
        std::uniform_real_distribution<double> distribution(-100.0, 100.0);
        for (std::size_t i = 0; i < 100; ++i) {
            write_scalar(scalar, Number::real(distribution(random_)), &x[i]);
            write_scalar(scalar, Number::real(distribution(random_)), &y[i]);
        }
        kernel.run(100, view(x), view(y), view(z));
        for (std::size_t i = 0; i < 100; ++i) {
            double a = read_scalar(scalar, &x[i]).f, b = read_scalar(scalar, &y[i]).f;
            double product = convert(Number::real(a * b), Scalar::f64, scalar).f;
            EXPECT_EQ(read_scalar(scalar, &z[i]).f, convert(Number::real(product + a), Scalar::f64, scalar).f) << type;
        }
    }
}

TEST_P(StraightLine, a_large_body_is_written_once_and_masked) {
    std::string text =
        "kernel @large(%x: array<f32, 1>, %y: array<f32, 1>) tid 1 {\n  %i = tid 0\n  %v0 = load %x[%i]\n";
    const int steps = 500;
    for (int n = 0; n < steps; ++n)
        text += "  %v" + std::to_string(n + 1) + " = " + (n % 3 ? "add" : "mul") + " %v" + std::to_string(n) + ", %v" +
                std::to_string(n / 2) + "\n";
    text += "  store %y[%i], %v" + std::to_string(steps) + "\n  return\n}\n";
    codegen::Options options;
    options.lanes = 1;
    Compiled scalar(text, options), kernel = compile(text);
    for (std::int64_t count = 0; count <= 40; ++count) {
        std::vector<float> x(40), y(40, -1.0f), expected = y;
        for (std::size_t i = 0; i < 40; ++i) x[i] = 0.01f * static_cast<float>(i) - 0.2f;
        scalar.run(count, view(x), view(expected));
        kernel.run(count, view(x), view(y));
        EXPECT_EQ(std::memcmp(y.data(), expected.data(), 160), 0) << count;
    }
}

TEST_P(StraightLine, arguments_that_overlap_work_without_the_promise) {
    codegen::Options options;
    options.lanes = GetParam();
    options.noalias = false;
    Compiled kernel(R"(
kernel @twice(%x: array<f32, 1>, %y: array<f32, 1>) tid 1 {
  %i = tid 0
  %a = load %x[%i]
  %b = add %a, %a
  store %y[%i], %b
  %c = load %x[%i]
  %d = add %c, %a
  store %y[%i], %d
  return
}
)",
                    options);
    auto x = numbers(37), expected = x;
    for (float& v : expected) v = 2 * v + v;
    kernel.run(37, view(x), view(x));
    EXPECT_EQ(x, expected);
}

TEST_P(StraightLine, bools_are_bytes_in_memory) {
    Compiled kernel = compile(R"(
kernel @bools(%a: array<bool, 1>, %b: array<bool, 1>, %y: array<bool, 1>) tid 1 {
  %i = tid 0
  %p = load %a[%i]
  %q = load %b[%i]
  %n = invert %q
  %r = and %p, %n
  store %y[%i], %r
  return
}
)");
    std::vector<std::uint8_t> a(37), b(37), y(40, 9);
    for (std::size_t i = 0; i < 37; ++i) a[i] = i % 3 == 0 ? 7 : 0, b[i] = i % 2;
    kernel.run(37, view(a), view(b), view(y));
    for (std::size_t i = 0; i < 37; ++i) EXPECT_EQ(y[i], i % 3 == 0 && i % 2 == 0 ? 1 : 0);
    EXPECT_EQ(y[37], 9);
}

}  // namespace
}  // namespace weft::test
