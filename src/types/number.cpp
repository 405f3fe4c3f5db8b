// Numbers at compile time: conversions between scalar types and their bytes in memory.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "types/type.h"

namespace weft {
namespace {

// A binary floating-point format narrower than double.
struct Format {
    int exponent_bits;
    int fraction_bits;

    int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr Format kHalf{5, 10};
constexpr Format kBrain{8, 7};

// Rounds to nearest, ties to even. The significand is shifted so that its last kept bit is the last bit of the result,
// which also makes subnormals come out right; a carry out of the fraction moves into the exponent by itself.
std::uint16_t encode(double value, Format format) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
    const std::uint16_t sign = static_cast<std::uint16_t>(bits >> 63 << (format.exponent_bits + format.fraction_bits));
    const std::uint16_t infinity =
        static_cast<std::uint16_t>(((1u << format.exponent_bits) - 1) << format.fraction_bits);
    if (std::isnan(value)) return sign | infinity | static_cast<std::uint16_t>(1u << (format.fraction_bits - 1));
    if (std::isinf(value)) return sign | infinity;
    const int raw_exponent = static_cast<int>(bits >> 52 & 0x7FF);
    if (raw_exponent == 0) return sign;  // a double's subnormal is below half of any narrower subnormal

    const std::uint64_t significand = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    const int exponent = raw_exponent - 1023;
    const int smallest = 1 - format.bias();
    int shift = 52 - format.fraction_bits;
    if (exponent < smallest) shift += smallest - exponent;
    if (shift > 54) return sign;

    const std::uint64_t half = 1ull << (shift - 1);
    std::uint64_t kept = significand >> shift;
    const std::uint64_t rest = significand & ((half << 1) - 1);
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    // `kept` of a normal number includes the hidden bit, which adds the missing 1 to the exponent field.
    const int field = exponent < smallest ? 0 : exponent + format.bias() - 1;
    const std::uint64_t result = (static_cast<std::uint64_t>(field) << format.fraction_bits) + kept;
    return sign | static_cast<std::uint16_t>(result >= infinity ? infinity : result);
}

double decode(std::uint16_t bits, Format format) {
    const bool negative = bits >> (format.exponent_bits + format.fraction_bits) & 1;
    const int field = bits >> format.fraction_bits & ((1 << format.exponent_bits) - 1);
    const int fraction = bits & ((1 << format.fraction_bits) - 1);
    double magnitude;
    if (field == (1 << format.exponent_bits) - 1) {
        magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    } else if (field == 0) {
        magnitude = std::ldexp(fraction, 1 - format.bias() - format.fraction_bits);
    } else {
        magnitude = std::ldexp(fraction | 1 << format.fraction_bits, field - format.bias() - format.fraction_bits);
    }
    return negative ? -magnitude : magnitude;
}

double round_to(double value, Scalar to) {
    switch (to) {
        case Scalar::f16:
            return decode(encode(value, kHalf), kHalf);
        case Scalar::bf16:
            return decode(encode(value, kBrain), kBrain);
        case Scalar::f32:
            return static_cast<float>(value);
        default:
            return value;
    }
}

// A magnitude as a float of type `to`, rounded once. A narrow format is reached through double, which may itself have
// to round; setting the last bit of an inexact double ("round to odd") keeps the second rounding right.
double unsigned_to_float(std::uint64_t magnitude, Scalar to) {
    if (to == Scalar::f64) return static_cast<double>(magnitude);
    if (to == Scalar::f32) return static_cast<float>(magnitude);
    if (const int surplus = 11 - std::countl_zero(magnitude); magnitude != 0 && surplus > 0) {
        const std::uint64_t lost = magnitude & ((1ull << surplus) - 1);
        magnitude = (magnitude - lost) | (lost ? 1ull << surplus : 0);
    }
    return round_to(static_cast<double>(magnitude), to);
}

// Keeps the low bits and extends them as the type says.
std::int64_t wrap(std::int64_t value, const ScalarInfo& to) {
    if (to.bits == 64) return value;
    const int unused = 64 - to.bits;
    const std::uint64_t high = static_cast<std::uint64_t>(value) << unused;
    return to.kind == ScalarKind::signed_int ? static_cast<std::int64_t>(high) >> unused
                                             : static_cast<std::int64_t>(high >> unused);
}

std::int64_t float_to_int(double value, const ScalarInfo& to) {
    if (std::isnan(value)) return 0;
    const double whole = std::trunc(value);
    if (to.kind == ScalarKind::unsigned_int) {
        if (whole <= 0) return 0;
        const std::uint64_t most = to.bits == 64 ? ~0ull : (1ull << to.bits) - 1;
        if (whole >= std::ldexp(1.0, to.bits)) return static_cast<std::int64_t>(most);
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(whole));
    }
    const std::int64_t most = static_cast<std::int64_t>((1ull << (to.bits - 1)) - 1);
    if (whole >= std::ldexp(1.0, to.bits - 1)) return most;
    if (whole <= -std::ldexp(1.0, to.bits - 1)) return -most - 1;
    return static_cast<std::int64_t>(whole);
}

}  // namespace

Number convert(Number value, Scalar from, Scalar to) {
    const ScalarInfo& source = info(from);
    const ScalarInfo& target = info(to);
    if (target.kind == ScalarKind::boolean) return Number::integer(source.is_float() ? value.f != 0.0 : value.i != 0);
    if (target.is_float()) {
        if (source.is_float()) return Number::real(round_to(value.f, to));
        const bool negative = source.kind == ScalarKind::signed_int && value.i < 0;
        const std::uint64_t bits = static_cast<std::uint64_t>(value.i);
        const double magnitude = unsigned_to_float(negative ? 0 - bits : bits, to);
        return Number::real(negative ? -magnitude : magnitude);
    }
    return Number::integer(source.is_float() ? float_to_int(value.f, target) : wrap(value.i, target));
}

void write_scalar(Scalar scalar, Number value, void* to) {
    switch (scalar) {
        case Scalar::f16: {
            const std::uint16_t bits = encode(value.as_double(), kHalf);
            std::memcpy(to, &bits, sizeof bits);
            return;
        }
        case Scalar::bf16: {
            const std::uint16_t bits = encode(value.as_double(), kBrain);
            std::memcpy(to, &bits, sizeof bits);
            return;
        }
        case Scalar::f32: {
            const float bits = static_cast<float>(value.as_double());
            std::memcpy(to, &bits, sizeof bits);
            return;
        }
        case Scalar::f64: {
            const double bits = value.as_double();
            std::memcpy(to, &bits, sizeof bits);
            return;
        }
        default:
            // Every machine that Weft targets is little-endian: the low bytes come first.
            static_assert(std::endian::native == std::endian::little);
            std::memcpy(to, &value.i, static_cast<std::size_t>(info(scalar).bytes()));
    }
}

Number read_scalar(Scalar scalar, const void* from) {
    const ScalarInfo& row = info(scalar);
    if (row.is_float() && row.bits == 16) {
        std::uint16_t bits;
        std::memcpy(&bits, from, sizeof bits);
        return Number::real(decode(bits, scalar == Scalar::f16 ? kHalf : kBrain));
    }
    if (scalar == Scalar::f32) {
        float value;
        std::memcpy(&value, from, sizeof value);
        return Number::real(value);
    }
    if (scalar == Scalar::f64) {
        double value;
        std::memcpy(&value, from, sizeof value);
        return Number::real(value);
    }
    std::int64_t bits = 0;
    std::memcpy(&bits, from, static_cast<std::size_t>(row.bytes()));
    return Number::integer(wrap(bits, row));
}

}  // namespace weft
