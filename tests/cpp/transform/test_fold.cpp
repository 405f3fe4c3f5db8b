#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "transform/simplify/fold.h"

namespace weft::transform {
namespace {

using ir::Op;

// The result of C in the type itself, as compiled kernels compute it.
template <class T>
void expect_integer_rules(Scalar scalar) {
    std::mt19937_64 random(3);
    const T corners[] = {T(0), T(1), T(-1), T(2), T(7), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    const auto pick = [&] { return random() % 2 ? corners[random() % 7] : static_cast<T>(random()); };
    const auto number = [](T value) { return Number::integer(static_cast<std::int64_t>(value)); };
    for (int i = 0; i < 2000; ++i) {
        const T a = pick(), b = pick();
        const auto expect = [&](Op op, T wanted) {
            const std::optional<Number> found = fold_binary(op, scalar, number(a), number(b));
            ASSERT_TRUE(found) << op_name(op);
            EXPECT_EQ(*found, number(wanted)) << op_name(op) << " " << +a << " " << +b;
        };
        using Unsigned = std::make_unsigned_t<T>;
        const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
        expect(Op::add, static_cast<T>(ua + ub));
        expect(Op::sub, static_cast<T>(ua - ub));
        expect(Op::mul, static_cast<T>(ua * ub));
        expect(Op::min, std::min(a, b));
        expect(Op::max, std::max(a, b));
        expect(Op::and_, a & b);
        expect(Op::or_, a | b);
        expect(Op::xor_, a ^ b);
        const int shift = static_cast<int>(static_cast<Unsigned>(b) % (8 * sizeof(T)));
        expect(Op::shl, static_cast<T>(ua << shift));
        expect(Op::shr, static_cast<T>(a >> shift));
        const bool faults = b == 0 || (std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == T(-1));
        if (faults) {
            EXPECT_FALSE(fold_binary(Op::div, scalar, number(a), number(b)));
            EXPECT_FALSE(fold_binary(Op::rem, scalar, number(a), number(b)));
        } else {
            expect(Op::div, static_cast<T>(a / b));
            expect(Op::rem, static_cast<T>(a % b));
        }
        EXPECT_EQ(fold_unary(Op::neg, scalar, number(a)), number(static_cast<T>(0 - ua)));
        EXPECT_EQ(fold_unary(Op::invert, scalar, number(a)), number(static_cast<T>(~a)));
        EXPECT_EQ(fold_compare(Op::cmp_lt, scalar, number(a), number(b)), a < b);
        EXPECT_EQ(fold_compare(Op::cmp_ge, scalar, number(a), number(b)), a >= b);
        EXPECT_EQ(fold_bit_count(scalar, number(a)), __builtin_popcountll(static_cast<Unsigned>(a)));
    }
}

TEST(Fold, integers_do_what_c_does_in_their_type) {
    expect_integer_rules<std::int8_t>(Scalar::i8);
    expect_integer_rules<std::uint8_t>(Scalar::u8);
    expect_integer_rules<std::int16_t>(Scalar::i16);
    expect_integer_rules<std::uint16_t>(Scalar::u16);
    expect_integer_rules<std::int32_t>(Scalar::i32);
    expect_integer_rules<std::uint32_t>(Scalar::u32);
    expect_integer_rules<std::int64_t>(Scalar::i64);
    expect_integer_rules<std::uint64_t>(Scalar::u64);
}

TEST(Fold, f32_is_computed_in_single_precision) {
    std::mt19937_64 random(5);
    for (int i = 0; i < 20000; ++i) {
        const auto pick = [&] {
            return std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())),
                              static_cast<int>(random() % 200) - 130);
        };
        const volatile float a = pick(), b = pick(), c = pick();
        const auto expect = [&](Op op, float wanted) {
            const std::optional<Number> found = fold_binary(op, Scalar::f32, Number::real(a), Number::real(b));
            if (std::isnan(wanted)) {
                EXPECT_FALSE(found);
            } else {
                EXPECT_EQ(found->f, wanted) << op_name(op);
            }
        };
        expect(Op::add, a + b);
        expect(Op::sub, a - b);
        expect(Op::mul, a * b);
        expect(Op::div, a / b);
        EXPECT_EQ(fold_unary(Op::sqrt, Scalar::f32, Number::real(std::fabs(a)))->f, std::sqrt(std::fabs(a)));
        const float fused = std::fma(a, b, c);
        EXPECT_EQ(fold_fma(Scalar::f32, Number::real(a), Number::real(b), Number::real(c))->f, fused);
    }
}

TEST(Fold, leaves_what_machines_do_differently) {
    const Number one = Number::real(1), zero = Number::real(0), minus_zero = Number::real(-0.0);
    for (const Op op : {Op::sin, Op::cos, Op::exp, Op::log, Op::tanh, Op::cbrt, Op::erf}) {
        EXPECT_FALSE(fold_unary(op, Scalar::f32, one)) << op_name(op);
    }
    EXPECT_FALSE(fold_binary(Op::pow, Scalar::f32, one, one));
    EXPECT_FALSE(fold_binary(Op::atan2, Scalar::f32, one, one));
    EXPECT_FALSE(fold_binary(Op::div, Scalar::f32, zero, zero));
    EXPECT_FALSE(fold_unary(Op::sqrt, Scalar::f64, Number::real(-1)));
    EXPECT_FALSE(fold_binary(Op::min, Scalar::f32, zero, minus_zero));
    EXPECT_EQ(fold_binary(Op::div, Scalar::f32, one, zero)->f, HUGE_VAL);
    EXPECT_EQ(fold_binary(Op::max, Scalar::f64, Number::real(NAN), one)->f, 1.0);
}

TEST(Fold, bool_logic_stays_bool) {
    for (const std::int64_t a : {0, 1}) {
        EXPECT_EQ(fold_unary(Op::invert, Scalar::boolean, Number::integer(a))->i, !a);
        for (const std::int64_t b : {0, 1}) {
            EXPECT_EQ(fold_binary(Op::xor_, Scalar::boolean, Number::integer(a), Number::integer(b))->i, a ^ b);
            EXPECT_EQ(fold_binary(Op::and_, Scalar::boolean, Number::integer(a), Number::integer(b))->i, a & b);
        }
    }
}

TEST(Fold, bitcast_keeps_bits) {
    EXPECT_EQ(fold_bitcast(Scalar::f32, Scalar::u32, Number::real(1.0))->i, 0x3F800000);
    EXPECT_EQ(fold_bitcast(Scalar::i64, Scalar::f64, Number::integer(0x4000000000000000))->f, 2.0);
    EXPECT_FALSE(fold_bitcast(Scalar::u32, Scalar::f32, Number::integer(0x7FC00001)));
}

}  // namespace
}  // namespace weft::transform
