#include "sema/literals.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "support/error.h"

namespace weft::sema {

namespace {

std::int64_t lowest(Scalar scalar) {
    const ScalarInfo& s = info(scalar);
    return s.is_signed() ? std::numeric_limits<std::int64_t>::min() >> (64 - s.bits) : 0;
}

// As unsigned, so that it holds the largest u64.
std::uint64_t highest(Scalar scalar) {
    const ScalarInfo& s = info(scalar);
    return std::numeric_limits<std::uint64_t>::max() >> (64 - s.bits + (s.is_signed() ? 1 : 0));
}

// Results of the type's own arithmetic wrap; those of literals must stay exact.
std::optional<Number> integer(Scalar scalar, __int128 value, bool exact) {
    if (exact &&
        (value < std::numeric_limits<std::int64_t>::min() || value > std::numeric_limits<std::int64_t>::max())) {
        return std::nullopt;
    }
    return convert(Number::integer(static_cast<std::int64_t>(value)), Scalar::i64, scalar);
}

__int128 wide(Scalar scalar, Number n) {
    if (scalar == Scalar::u64) return static_cast<std::uint64_t>(n.i);
    return n.i;
}

__int128 floor_division(__int128 a, __int128 b) {
    const __int128 quotient = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

std::optional<__int128> power(__int128 base, __int128 exponent) {
    if (exponent < 0) return std::nullopt;
    __int128 result = 1;
    for (__int128 i = 0; i < exponent; ++i) {
        result *= base;
        if (result > std::numeric_limits<std::int64_t>::max() || result < std::numeric_limits<std::int64_t>::min()) {
            return std::nullopt;
        }
        if (result == base && (base == 0 || base == 1)) break;  // the same for every larger exponent
        if (i > 64 && base == -1) return exponent % 2 == 0 ? 1 : -1;
    }
    return result;
}

std::optional<Number> fold_integers(syntax::BinaryOperator op, Scalar scalar, Number a, Number b, bool exact) {
    using Operator = syntax::BinaryOperator;
    const __int128 x = wide(scalar, a), y = wide(scalar, b);
    const int bits = info(scalar).bits;
    switch (op) {
        case Operator::add:
            return integer(scalar, x + y, exact);
        case Operator::sub:
            return integer(scalar, x - y, exact);
        case Operator::mul:
            return integer(scalar, x * y, exact);
        case Operator::div:
            return y == 0 ? std::nullopt : integer(scalar, x / y, exact);
        case Operator::mod:
            return y == 0 ? std::nullopt : integer(scalar, x % y, exact);
        case Operator::floordiv:
            return y == 0 ? std::nullopt : integer(scalar, floor_division(x, y), exact);
        case Operator::pow: {
            const std::optional<__int128> result = exact ? power(x, y) : std::nullopt;
            return result ? integer(scalar, *result, exact) : std::nullopt;
        }
        case Operator::lshift:
            if (y < 0 || y >= bits || (exact && y > 62)) return std::nullopt;
            return integer(scalar, x * (static_cast<__int128>(1) << static_cast<int>(y)), exact);
        case Operator::rshift:
            return y < 0 || y >= bits ? std::nullopt : integer(scalar, x >> static_cast<int>(y), exact);
        case Operator::bit_or:
            return integer(scalar, x | y, exact);
        case Operator::bit_xor:
            return integer(scalar, x ^ y, exact);
        case Operator::bit_and:
            return integer(scalar, x & y, exact);
        case Operator::matmul:
            break;
    }
    return std::nullopt;
}

std::optional<Number> fold_floats(syntax::BinaryOperator op, Scalar scalar, double x, double y) {
    using Operator = syntax::BinaryOperator;
    double result = 0.0;
    switch (op) {
        case Operator::add:
            result = x + y;
            break;
        case Operator::sub:
            result = x - y;
            break;
        case Operator::mul:
            result = x * y;
            break;
        case Operator::div:
            result = x / y;
            break;
        case Operator::mod:
            result = std::fmod(x, y);
            break;
        case Operator::floordiv:
            result = std::floor(x / y);
            break;
        case Operator::pow:
            result = std::pow(x, y);
            break;
        default:
            return std::nullopt;
    }
    return convert(Number::real(result), Scalar::f64, scalar);
}

template <class T>
bool compare(syntax::CompareOperator op, T x, T y) {
    using Operator = syntax::CompareOperator;
    switch (op) {
        case Operator::lt:
            return x < y;
        case Operator::le:
            return x <= y;
        case Operator::gt:
            return x > y;
        case Operator::ge:
            return x >= y;
        case Operator::eq:
            return x == y;
        case Operator::ne:
            return x != y;
        default:
            throw InternalError("fold: not a comparison of numbers");
    }
}

}  // namespace

std::string spelling(Number number) {
    if (!number.is_float) return std::to_string(number.i);
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", number.f);
    std::string result = text;
    if (result.find_first_of(".en") == std::string::npos) result += ".0";
    return result;
}

bool same_bits(Number a, Number b) {
    if (a.is_float != b.is_float) return false;
    return a.is_float ? std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f) : a.i == b.i;
}

bool literal_fits(Number literal, Scalar scalar) {
    const ScalarInfo& s = info(scalar);
    if (s.is_float()) {
        const double value = literal.as_double();
        return !std::isfinite(value) || std::isfinite(convert(Number::real(value), Scalar::f64, scalar).f);
    }
    if (literal.is_float || s.kind == ScalarKind::boolean) return false;
    if (literal.i < lowest(scalar)) return false;
    return literal.i < 0 || static_cast<std::uint64_t>(literal.i) <= highest(scalar);
}

Number literal_as(Number literal, Scalar scalar) {
    if (!info(scalar).is_float()) return Number::integer(literal.i);
    return literal.is_float ? convert(literal, Scalar::f64, scalar) : convert(literal, Scalar::i64, scalar);
}

std::string range_text(Scalar scalar) {
    return std::to_string(lowest(scalar)) + " to " + std::to_string(highest(scalar));
}

std::optional<Number> fold(syntax::BinaryOperator op, Scalar scalar, Number a, Number b, bool exact) {
    if (info(scalar).is_float()) return fold_floats(op, scalar, a.as_double(), b.as_double());
    return fold_integers(op, scalar, a, b, exact);
}

bool fold(syntax::CompareOperator op, Scalar scalar, Number a, Number b) {
    if (info(scalar).is_float()) return compare(op, a.as_double(), b.as_double());
    return compare(op, wide(scalar, a), wide(scalar, b));
}

}  // namespace weft::sema
