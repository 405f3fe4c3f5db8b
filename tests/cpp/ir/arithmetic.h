// The operations on scalars by the host's own arithmetic and not through the folder, for the interpreter.
// Floats are computed in double and rounded to their type; integers wrap.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "ir/ir.h"

namespace weft::ir::testing {

[[noreturn]] inline void unknown(Op op) {
    throw std::logic_error(std::string("the interpreter does not know ") + op_name(op));
}

// The number as its type has it: an integer of 64 bits cut to the type, a double rounded to it.
inline Number fit(Number number, Scalar scalar) {
    return convert(number, number.is_float ? Scalar::f64 : Scalar::i64, scalar);
}
inline Number fit(double value, Scalar scalar) { return fit(Number::real(value), scalar); }
inline Number fit(std::uint64_t bits, Scalar scalar) {
    return fit(Number::integer(static_cast<std::int64_t>(bits)), scalar);
}

inline bool is_less(Scalar scalar, Number a, Number b) {
    if (a.is_float) return a.f < b.f;
    if (scalar == Scalar::u64) return static_cast<std::uint64_t>(a.i) < static_cast<std::uint64_t>(b.i);
    return a.i < b.i;
}

inline bool compare(Op op, Scalar scalar, Number a, Number b) {
    const bool is_equal = a.is_float ? a.f == b.f : a.i == b.i;
    switch (op) {
        case Op::cmp_lt:
            return is_less(scalar, a, b);
        case Op::cmp_le:
            return is_less(scalar, a, b) || is_equal;
        case Op::cmp_gt:
            return is_less(scalar, b, a);
        case Op::cmp_ge:
            return is_less(scalar, b, a) || is_equal;
        case Op::cmp_eq:
            return is_equal;
        case Op::cmp_ne:
            return !is_equal;
        default:
            unknown(op);
    }
}

inline bool classify(Op op, Number a) {
    switch (op) {
        case Op::isnan:
            return std::isnan(a.f);
        case Op::isinf:
            return std::isinf(a.f);
        case Op::isfinite:
            return std::isfinite(a.f);
        default:
            unknown(op);
    }
}

inline double unary_of_float(Op op, double a) {
    switch (op) {
        case Op::neg:
            return -a;
        case Op::abs:
            return std::fabs(a);
        case Op::sqrt:
            return std::sqrt(a);
        case Op::cbrt:
            return std::cbrt(a);
        case Op::sin:
            return std::sin(a);
        case Op::cos:
            return std::cos(a);
        case Op::asin:
            return std::asin(std::clamp(a, -1.0, 1.0));
        case Op::acos:
            return std::acos(std::clamp(a, -1.0, 1.0));
        case Op::exp:
            return std::exp(a);
        case Op::log:
            return std::log(a);
        case Op::floor:
            return std::floor(a);
        case Op::trunc:
            return std::trunc(a);
        case Op::detach:
        case Op::detach_reverse:
            return a;
        default:
            unknown(op);
    }
}

inline Number unary(Op op, Scalar scalar, Number a) {
    if (a.is_float) return fit(unary_of_float(op, a.f), scalar);
    const auto bits = static_cast<std::uint64_t>(a.i);
    switch (op) {
        case Op::neg:
            return fit(0 - bits, scalar);
        case Op::abs:
            return info(scalar).is_signed() && a.i < 0 ? fit(0 - bits, scalar) : a;
        case Op::invert:
            return scalar == Scalar::boolean ? Number::integer(!a.i) : fit(~bits, scalar);
        case Op::floor:
        case Op::trunc:
        case Op::detach:
        case Op::detach_reverse:
            return a;
        default:
            unknown(op);
    }
}

inline double binary_of_floats(Op op, double a, double b) {
    switch (op) {
        case Op::add:
            return a + b;
        case Op::sub:
            return a - b;
        case Op::mul:
            return a * b;
        case Op::div:
            return a / b;
        case Op::rem:
            return std::fmod(a, b);
        case Op::min:
            return std::fmin(a, b);
        case Op::max:
            return std::fmax(a, b);
        case Op::pow:
            return std::pow(a, b);
        case Op::atan2:
            return std::atan2(a, b);
        case Op::copysign:
            return std::copysign(a, b);
        default:
            unknown(op);
    }
}

// Toward zero; 0 if C has no answer.
inline std::uint64_t quotient(Scalar scalar, Number a, Number b) {
    const auto x = static_cast<std::uint64_t>(a.i), y = static_cast<std::uint64_t>(b.i);
    if (y == 0) return 0;
    if (!info(scalar).is_signed()) return x / y;
    const std::int64_t least = std::numeric_limits<std::int64_t>::min() >> (64 - info(scalar).bits);
    if (b.i == -1) return a.i == least ? 0 : 0 - x;
    return static_cast<std::uint64_t>(a.i / b.i);
}

inline Number binary(Op op, Scalar scalar, Number a, Number b) {
    if (a.is_float) return fit(binary_of_floats(op, a.f, b.f), scalar);
    const auto x = static_cast<std::uint64_t>(a.i), y = static_cast<std::uint64_t>(b.i);
    const int shift = static_cast<int>(y % static_cast<std::uint64_t>(info(scalar).bits));
    switch (op) {
        case Op::add:
            return fit(x + y, scalar);
        case Op::sub:
            return fit(x - y, scalar);
        case Op::mul:
            return fit(x * y, scalar);
        case Op::div:
            return fit(quotient(scalar, a, b), scalar);
        case Op::rem:
            if (y == 0 || (b.i == -1 && info(scalar).is_signed())) return Number::integer(0);
            return fit(x - quotient(scalar, a, b) * y, scalar);
        case Op::min:
            return is_less(scalar, b, a) ? b : a;
        case Op::max:
            return is_less(scalar, a, b) ? b : a;
        case Op::and_:
            return Number::integer(a.i & b.i);
        case Op::or_:
            return Number::integer(a.i | b.i);
        case Op::xor_:
            return Number::integer(a.i ^ b.i);
        case Op::shl:
            return fit(x << shift, scalar);
        case Op::shr:
            return Number::integer(info(scalar).is_signed() ? a.i >> shift : static_cast<std::int64_t>(x >> shift));
        default:
            unknown(op);
    }
}

inline Number same_bits(Number number, Scalar from, Scalar to) {
    unsigned char bytes[8];
    write_scalar(from, number, bytes);
    return read_scalar(to, bytes);
}

}  // namespace weft::ir::testing
