// The floats of 8 and 16 bits, which only memory holds: the layout of their bits, and the only implementation of their
// conversions. Arithmetic on them is done in float32.
//
// The conversions are templates over a word of 32 bits: std::uint32_t on the host, a register in compiled code
// (codegen/conversions.cpp). Both give the same bits for every number, and the same as the package ml_dtypes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace weft {

// A sign, an exponent and a fraction, as in IEEE 754: exponent 0 is for subnormals, the bias is half of the range.
struct FloatFormat {
    int exponent_bits = 0;  // 0: no float
    int fraction_bits = 0;
    // A format without an infinity uses the largest exponent for numbers too, and only all ones are NaN.
    bool has_infinity = true;

    constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
    // Without the sign.
    constexpr std::uint32_t all_ones() const { return (1u << (exponent_bits + fraction_bits)) - 1; }
    constexpr std::uint32_t top_exponent() const { return all_ones() >> fraction_bits << fraction_bits; }
    constexpr std::uint32_t largest() const { return (has_infinity ? top_exponent() : all_ones()) - 1; }
    constexpr std::uint32_t nan() const {
        return has_infinity ? top_exponent() | 1u << (fraction_bits - 1) : all_ones();
    }
    // The magnitude that larger numbers overflow to: infinity, or NaN in a format without an infinity.
    constexpr std::uint32_t overflow() const { return has_infinity ? top_exponent() : all_ones(); }
    // Whether the format is the upper bits of a float32, with the same exponents.
    constexpr bool is_upper_part() const { return exponent_bits == 8 && has_infinity; }
};

constexpr FloatFormat no_float() { return {}; }
constexpr FloatFormat ieee(int exponent_bits, int fraction_bits) { return {exponent_bits, fraction_bits, true}; }
constexpr FloatFormat without_infinity(int exponent_bits, int fraction_bits) {
    return {exponent_bits, fraction_bits, false};
}

namespace small_float {

// The functions that a word needs for the templates besides the operators of integers: a number of its kind, a choice,
// and the sum of two words as the bits of floats.
inline std::uint32_t number(std::uint32_t, std::uint32_t value) { return value; }
inline std::uint32_t choose(bool condition, std::uint32_t yes, std::uint32_t no) {
    // Branch-free, so that loops over numbers are vectorized.
    const std::uint32_t mask = 0u - static_cast<std::uint32_t>(condition);
    return (yes & mask) | (no & ~mask);
}
inline std::uint32_t add_as_floats(std::uint32_t a, std::uint32_t b) {
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
}

// The bits of a float32 with the value of `bits`. Source for the subnormals, which an addition normalises: F. Giesen,
// "Half to float done quick".
template <typename Word>
Word widen(Word bits, FloatFormat from) {
    const int above = 32 - from.bits(), drop = 23 - from.fraction_bits;
    if (from.is_upper_part()) return bits << above;
    const Word sign = (bits & (from.all_ones() + 1)) << above;
    const Word magnitude = (bits & from.all_ones()) << drop;
    const Word exponent = magnitude & (from.top_exponent() << drop);
    const auto exponents = [](int count) { return static_cast<std::uint32_t>(count) << 23; };
    const Word normal = magnitude + exponents(127 - from.bias());
    const Word special = normal + exponents(128 - (1 << from.exponent_bits) + 1 + from.bias());
    // -2^(1 - bias): the implicit leading bit, which a subnormal does not have.
    const Word hidden = number(bits, exponents(128 - from.bias()) | 0x80000000u);
    const Word subnormal = add_as_floats(normal + exponents(1), hidden);
    const Word finite = choose(exponent == 0u, subnormal, normal);
    const auto is_special =
        from.has_infinity ? exponent == (from.top_exponent() << drop) : magnitude == (from.all_ones() << drop);
    return choose(is_special, special, finite) | sign;
}

// Rounds a float32, given as its bits, to nearest, ties to even. A NaN stays a NaN.
template <typename Word>
Word narrow(Word bits, FloatFormat to) {
    const int above = 32 - to.bits(), drop = 23 - to.fraction_bits;
    const Word is_odd = bits >> drop & 1u;
    const Word sign = bits & 0x80000000u, magnitude = bits ^ sign;
    const std::uint32_t half = (1u << (drop - 1)) - 1;
    if (to.is_upper_part()) {
        const Word quiet = bits >> above | (1u << (to.fraction_bits - 1));
        return choose(magnitude > 0x7f800000u, quiet, (bits + is_odd + half) >> above);
    }
    const auto exponents = [](int count) { return static_cast<std::uint32_t>(count) << 23; };
    // This addend aligns the last bit of the subnormal with that of the sum, so that the addition rounds there.
    const std::uint32_t magic = exponents(127 - to.bias() + drop + 1);
    const Word subnormal = add_as_floats(magnitude, number(bits, magic)) - magic;
    const Word normal = (magnitude + (half - exponents(127 - to.bias())) + is_odd) >> drop;
    const Word finite = choose(magnitude < exponents(128 - to.bias()), subnormal, normal);
    const Word special = choose(magnitude > 0x7f800000u, number(bits, to.nan()), number(bits, to.overflow()));
    return choose(finite > to.largest(), special, finite) | sign >> above;
}

}  // namespace small_float

// A float32 that rounds to every narrower float as `value` itself does: an inexact one has 1 as its last bit ("round to
// odd": Boldo and Melquiond, "When double rounding is odd", 2005).
inline std::uint32_t odd_float_bits(double value) {
    const float nearest = static_cast<float>(value);
    const double back = static_cast<double>(nearest);
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
    if (std::isnan(value) || back == value) return bits;
    return (std::fabs(back) > std::fabs(value) ? bits - 1 : bits) | 1u;
}

}  // namespace weft
