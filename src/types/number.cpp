// Numbers at compile time: conversions between scalar types and their bytes in memory.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "types/type.h"

namespace weft {
namespace {

std::uint32_t encode(double value, FloatFormat format) { return small_float::narrow(odd_float_bits(value), format); }

double decode(std::uint32_t bits, FloatFormat format) { return std::bit_cast<float>(small_float::widen(bits, format)); }

double round_to(double value, Scalar to) {
    if (info(to).is_small_float()) return decode(encode(value, info(to).format), info(to).format);
    return to == Scalar::f32 ? static_cast<double>(static_cast<float>(value)) : value;
}

// A magnitude as a float of type `to`, rounded once. A narrow format is reached through double, which may itself have
// to round. Setting the last bit of an inexact double ("round to odd") keeps the second rounding correct.
double unsigned_to_float(std::uint64_t magnitude, Scalar to) {
    if (to == Scalar::f64) return static_cast<double>(magnitude);
    if (to == Scalar::f32) return static_cast<float>(magnitude);
    if (const int surplus = 11 - std::countl_zero(magnitude); magnitude != 0 && surplus > 0) {
        const std::uint64_t lost = magnitude & ((1ull << surplus) - 1);
        magnitude = (magnitude - lost) | (lost ? 1ull << surplus : 0);
    }
    return round_to(static_cast<double>(magnitude), to);
}

// Truncates to the type's low bits and extends them by its sign.
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

double largest(Scalar scalar) {
    const FloatFormat format = info(scalar).format;
    if (info(scalar).is_small_float()) return decode(format.largest(), format);
    return scalar == Scalar::f64 ? std::numeric_limits<double>::max()
                                 : static_cast<double>(std::numeric_limits<float>::max());
}

// Every machine that Weft targets is little-endian: the low bytes come first.
static_assert(std::endian::native == std::endian::little);

void write_scalar(Scalar scalar, Number value, void* to) {
    const ScalarInfo& row = info(scalar);
    const auto size = static_cast<std::size_t>(row.bytes());
    if (!row.is_float()) {
        std::memcpy(to, &value.i, size);
    } else if (row.is_small_float()) {
        const std::uint32_t bits = encode(value.as_double(), row.format);
        std::memcpy(to, &bits, size);
    } else if (scalar == Scalar::f32) {
        const float single = static_cast<float>(value.as_double());
        std::memcpy(to, &single, size);
    } else {
        const double wide = value.as_double();
        std::memcpy(to, &wide, size);
    }
}

Number read_scalar(Scalar scalar, const void* from) {
    const ScalarInfo& row = info(scalar);
    if (row.is_small_float()) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, from, static_cast<std::size_t>(row.bytes()));
        return Number::real(decode(bits, row.format));
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
