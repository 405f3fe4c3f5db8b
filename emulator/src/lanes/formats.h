#pragma once
// Floats of 16 and 8 bits, and roundings that a host does not have. All values go through a double, which represents
// each of these numbers exactly. Results with more digits than a double are first rounded to odd (Boldo and Melquiond,
// "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
#include <cstdint>

#include "lanes/lanes.h"

namespace weft::emulator::WEFT_LEVEL {

using f32 = float;
using f64 = double;
using s8 = int8_t;
using u8 = uint8_t;
using s16 = int16_t;
using u16 = uint16_t;
using s32 = int32_t;
using u32 = uint32_t;
using s64 = int64_t;
using u64 = uint64_t;
using s128 = __int128;
using u128 = unsigned __int128;

struct Half {
    uint16_t bits;
};
struct Brain {
    uint16_t bits;
};
template <class T>
struct Pair {
    T low, high;
};

template <class To, class From>
inline To bits_to(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

// The parameters of a format with sign, exponent and fraction as in IEEE 754.
struct Format {
    int exponent_bits, fraction_bits;
    constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr Format kHalf{5, 10}, kBrain{8, 7}, kSingle{8, 23};

// Whether a number is rounded away from zero; `rest` is the removed part, `half` one half of the last place.
inline bool rounds_up(bool negative, bool odd, u64 rest, u64 half, int mode) {
    switch (mode & (kRoundMask | kAway)) {
        case kRoundZero:
            return false;
        case kRoundDown:
            return negative && rest;
        case kRoundUp:
            return !negative && rest;
        case kAway:
            return rest >= half;
        default:
            return rest > half || (rest == half && odd);
    }
}

// The bits of x in a smaller format, sign included. Precondition: x is not NaN. If x was rounded to odd, the result is
// the correctly rounded exact result.
inline u32 round_to(Format format, double x, int mode) {
    const u64 bits = bits_to<u64>(x);
    const bool negative = bits >> 63;
    const u32 sign = u32(negative) << (format.exponent_bits + format.fraction_bits);
    const u32 infinity = ((1u << format.exponent_bits) - 1) << format.fraction_bits;
    const int exponent = int(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024) return sign | infinity;
    if (exponent == -1023 && !(bits << 1)) return sign;
    // the significand with its leading one, and the number of bits to remove
    u64 significand = (bits & 0xfffffffffffff) | (exponent > -1023 ? u64(1) << 52 : 0);
    const int least = 1 - format.bias();
    int cut = 52 - format.fraction_bits;
    if (exponent < least) cut += least - exponent;
    if (cut > 62) {
        significand = 1;  // far below the smallest number: it only matters that it is not zero
        cut = 62;
    }
    const u64 rest = significand & ((u64(1) << cut) - 1);
    u64 kept = significand >> cut;
    kept += rounds_up(negative, kept & 1, rest, u64(1) << (cut - 1), mode);
    // Adding the exponent to the kept digits also propagates a carry of the rounding.
    u64 result = kept;
    if (exponent >= least) result += u64(exponent + format.bias() - 1) << format.fraction_bits;
    if (result >= infinity) {
        const int direction = mode & kRoundMask;
        const bool largest = direction == kRoundZero || direction == (negative ? kRoundUp : kRoundDown);
        result = largest ? infinity - 1 : infinity;
    }
    return sign | u32(result);
}

inline double widen(Format format, u32 bits) {
    const int width = format.exponent_bits + format.fraction_bits;
    const u64 sign = u64(bits >> width & 1) << 63;
    const u32 exponent = bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1);
    const u64 fraction = bits & ((1u << format.fraction_bits) - 1);
    if (exponent == (1u << format.exponent_bits) - 1) {
        return bits_to<double>(sign | u64(0x7ff) << 52 | fraction << (52 - format.fraction_bits));
    }
    if (exponent) {
        return bits_to<double>(sign | u64(exponent - format.bias() + 1023) << 52 |
                               fraction << (52 - format.fraction_bits));
    }
    // a subnormal number is its fraction times a power of 2
    const double scale = bits_to<double>(u64(1023 + 1 - format.bias() - format.fraction_bits) << 52);
    return bits_to<double>(bits_to<u64>(double(fraction) * scale) | sign);
}

inline double wide(Half x) { return widen(kHalf, x.bits); }
inline double wide(Brain x) { return bits_to<float>(u32(x.bits) << 16); }
inline double wide(float x) { return x; }

// PTX's canonical NaN, which arithmetic returns.
constexpr u32 kNan32 = 0x7fffffff;
constexpr u16 kNan16 = 0x7fff;

template <class T>
inline T narrow(double x, int mode = kRoundNearest);
template <>
inline Half narrow<Half>(double x, int mode) {
    return {x != x ? kNan16 : u16(round_to(kHalf, x, mode))};
}
template <>
inline Brain narrow<Brain>(double x, int mode) {
    return {x != x ? kNan16 : u16(round_to(kBrain, x, mode))};
}
template <>
inline float narrow<float>(double x, int mode) {
    return bits_to<float>(x != x ? kNan32 : round_to(kSingle, x, mode));
}

// Rounds to odd: `rest` is the exact result minus `result`; an inexact result becomes the neighbour with an odd last
// digit.
inline double to_odd(double result, double rest) {
    const u64 bits = bits_to<u64>(result);
    if (rest == 0 || rest != rest || (bits & 1) || (bits >> 52 & 0x7ff) == 0x7ff) return result;
    // zero with a rest becomes the tiniest number; others move towards their rest
    if (!(bits << 1)) return rest < 0 ? -4.9406564584124654e-324 : 4.9406564584124654e-324;
    return bits_to<double>((rest > 0) == (result > 0) ? bits + 1 : bits - 1);
}

// a + b rounded to odd, by the exact error of the sum (Knuth's TwoSum). Precondition: no operand is near the largest
// number.
inline double odd_sum(double a, double b) {
    const double sum = a + b;
    const double part = sum - a;
    const double rest = (a - (sum - part)) + (b - part);
    return to_odd(sum, rest);
}

}  // namespace weft::emulator::WEFT_LEVEL
