#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>

#include "types/type.h"

namespace weft {
namespace {

std::uint16_t bits_of(Scalar scalar, double value) {
    std::uint16_t bits = 0;
    write_scalar(scalar, Number::real(value), &bits);
    return bits;
}
double value_of(Scalar scalar, std::uint16_t bits) { return read_scalar(scalar, &bits).f; }

// The floats of 8 and 16 bits, by their definition: IEEE 754, and the two formats of 8 bits by Micikevicius et al.,
// "FP8 formats for deep learning", 2022.
struct Definition {
    Scalar scalar;
    int exponent_bits, fraction_bits;
    bool has_infinity;
    std::uint16_t largest, nan;  // bits of the greatest number and of the NaN that numbers become

    std::uint16_t sign() const { return static_cast<std::uint16_t>(1 << (exponent_bits + fraction_bits)); }
    // Without bit tricks.
    double value(std::uint16_t bits) const {
        const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
        const int fraction = bits & ((1 << fraction_bits) - 1);
        const int bias = (1 << (exponent_bits - 1)) - 1;
        const double sign = bits & this->sign() ? -1.0 : 1.0;
        const bool is_last = exponent == (1 << exponent_bits) - 1;
        if (is_last && has_infinity) return fraction ? NAN : sign * INFINITY;
        if (is_last && fraction == (1 << fraction_bits) - 1) return NAN;
        const double significand = (exponent ? 1.0 : 0.0) + fraction / std::pow(2.0, fraction_bits);
        return sign * significand * std::pow(2.0, (exponent ? exponent : 1) - bias);
    }
    // Numbers beyond the greatest one.
    std::uint16_t overflow() const { return has_infinity ? static_cast<std::uint16_t>(largest + 1) : nan; }
};
constexpr Definition kSmall[] = {
    {Scalar::f16, 5, 10, true, 0x7BFF, 0x7E00},
    {Scalar::bf16, 8, 7, true, 0x7F7F, 0x7FC0},
    {Scalar::f8e4m3fn, 4, 3, false, 0x7E, 0x7F},
    {Scalar::f8e5m2, 5, 2, true, 0x7B, 0x7E},
};

TEST(Number, the_small_floats_of_the_table_are_those_that_are_tested_here) {
    std::size_t count = 0;
    for (const ScalarInfo& scalar : all_scalars()) count += scalar.is_small_float();
    EXPECT_EQ(count, std::size(kSmall));
}

TEST(Number, every_small_float_is_read_as_defined_and_written_back) {
    for (const Definition& small : kSmall) {
        SCOPED_TRACE(info(small.scalar).ir);
        for (std::uint32_t b = 0; b < 2u * small.sign(); ++b) {
            const std::uint16_t bits = static_cast<std::uint16_t>(b);
            const double expected = small.value(bits), read = value_of(small.scalar, bits);
            ASSERT_EQ(std::isnan(read), std::isnan(expected)) << bits;
            if (std::isnan(read)) continue;
            ASSERT_EQ(read, expected) << bits;
            ASSERT_EQ(std::signbit(read), std::signbit(expected)) << bits;
            ASSERT_EQ(bits_of(small.scalar, read), bits);
        }
        EXPECT_EQ(bits_of(small.scalar, NAN), small.nan);
        EXPECT_EQ(largest(small.scalar), small.value(small.largest));
    }
}

// Between neighbours a < b, values round to the nearer one and the midpoint to the one whose last bit is 0.
TEST(Number, small_floats_round_to_nearest_even) {
    for (const Definition& small : kSmall) {
        SCOPED_TRACE(info(small.scalar).ir);
        const Scalar scalar = small.scalar;
        for (std::uint16_t bits = 0; bits < small.largest; ++bits) {
            const double a = value_of(scalar, bits), b = value_of(scalar, static_cast<std::uint16_t>(bits + 1));
            const double middle = (a + b) / 2;
            ASSERT_EQ(bits_of(scalar, middle), bits % 2 ? bits + 1 : bits) << bits;
            ASSERT_EQ(bits_of(scalar, std::nextafter(middle, a)), bits) << bits;
            ASSERT_EQ(bits_of(scalar, std::nextafter(middle, b)), bits + 1) << bits;
            ASSERT_EQ(bits_of(scalar, -middle), (bits % 2 ? bits + 1 : bits) | small.sign()) << bits;
        }
        // Half of the next step beyond the greatest number is too much, unless that one's last bit is 0.
        const double most = small.value(small.largest);
        const double step = most - small.value(static_cast<std::uint16_t>(small.largest - 1));
        EXPECT_EQ(bits_of(scalar, std::nextafter(most + step / 2, 0.0)), small.largest);
        EXPECT_EQ(bits_of(scalar, most + step / 2), small.largest % 2 ? small.overflow() : small.largest);
        EXPECT_EQ(bits_of(scalar, std::nextafter(most + step / 2, INFINITY)), small.overflow());
        EXPECT_EQ(bits_of(scalar, INFINITY), small.overflow());
        EXPECT_EQ(bits_of(scalar, -1e300), small.overflow() | small.sign());
        EXPECT_EQ(bits_of(scalar, -1e-300), small.sign());
        EXPECT_EQ(bits_of(scalar, 5e-324), 0);
    }
}

TEST(Number, integers_become_floats_with_one_rounding) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; ++i) {
        const std::int64_t value = static_cast<std::int64_t>(random() >> (random() % 64));
        EXPECT_EQ(convert(Number::integer(value), Scalar::i64, Scalar::f32).f, static_cast<float>(value));
        EXPECT_EQ(convert(Number::integer(-value), Scalar::i64, Scalar::f64).f, static_cast<double>(-value));
        EXPECT_EQ(convert(Number::integer(value), Scalar::u64, Scalar::f32).f,
                  static_cast<float>(static_cast<std::uint64_t>(value)));
        // long double holds every 64-bit integer exactly.
        const double brain = convert(Number::integer(value), Scalar::i64, Scalar::bf16).f;
        const std::uint16_t bits = bits_of(Scalar::bf16, brain);
        const auto error = [&](double candidate) { return std::fabs(static_cast<long double>(candidate) - value); };
        EXPECT_LE(error(brain), error(value_of(Scalar::bf16, static_cast<std::uint16_t>(bits + 1))));
        if (bits) {
            EXPECT_LE(error(brain), error(value_of(Scalar::bf16, static_cast<std::uint16_t>(bits - 1))));
        }
    }
    // Just above a midpoint of bf16 by less than a double can tell.
    EXPECT_EQ(convert(Number::integer((1ll << 62) + (1ll << 54) + 1), Scalar::i64, Scalar::bf16).f,
              std::ldexp(129, 55));
}

TEST(Number, floats_become_integers_saturating) {
    const auto to = [](double value, Scalar scalar) { return convert(Number::real(value), Scalar::f64, scalar).i; };
    EXPECT_EQ(to(-1.9, Scalar::i32), -1);
    EXPECT_EQ(to(1e10, Scalar::i32), std::numeric_limits<std::int32_t>::max());
    EXPECT_EQ(to(-1e10, Scalar::i32), std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(to(-0.5, Scalar::u8), 0);
    EXPECT_EQ(to(-3, Scalar::u8), 0);
    EXPECT_EQ(to(255.9, Scalar::u8), 255);
    EXPECT_EQ(to(256, Scalar::u8), 255);
    EXPECT_EQ(to(NAN, Scalar::i64), 0);
    EXPECT_EQ(to(INFINITY, Scalar::i64), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(to(-INFINITY, Scalar::i64), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(static_cast<std::uint64_t>(to(1.8e19, Scalar::u64)), 18000000000000000000ull);
    EXPECT_EQ(to(INFINITY, Scalar::u64), -1);
    EXPECT_EQ(to(0.25, Scalar::boolean), 1);
    EXPECT_EQ(to(-0.0, Scalar::boolean), 0);
}

TEST(Number, integers_wrap) {
    const auto to = [](std::int64_t value, Scalar scalar) {
        return convert(Number::integer(value), Scalar::i64, scalar).i;
    };
    EXPECT_EQ(to(300, Scalar::u8), 44);
    EXPECT_EQ(to(200, Scalar::i8), -56);
    EXPECT_EQ(to(-1, Scalar::u32), 4294967295);
    EXPECT_EQ(to(1ll << 31, Scalar::i32), -(1ll << 31));
    EXPECT_EQ(to(7, Scalar::boolean), 1);
}

TEST(Number, is_written_and_read_as_c_does) {
    const auto round_trip = [](Scalar scalar, Number value) {
        unsigned char bytes[8];
        std::memset(bytes, 0xAA, sizeof bytes);
        write_scalar(scalar, value, bytes);
        EXPECT_EQ(read_scalar(scalar, bytes), value) << info(scalar).ir;
        if (info(scalar).bytes() < 8) {
            EXPECT_EQ(bytes[info(scalar).bytes()], 0xAA) << info(scalar).ir;
        }
    };
    for (const ScalarInfo& scalar : all_scalars()) {
        if (scalar.is_float()) {
            round_trip(scalar.id, Number::real(-1.5));
        } else {
            round_trip(scalar.id, Number::integer(1));
            if (scalar.is_signed()) round_trip(scalar.id, Number::integer(-2));
        }
    }
}

}  // namespace
}  // namespace weft
