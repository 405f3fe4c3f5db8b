#include "transform/simplify/fold.h"

#include <bit>
#include <cmath>
#include <limits>

namespace weft::transform {
namespace {

using ir::Op;

// ---- the tables: one row per operation that is folded ----

struct IntUnary {
    Op op;
    std::uint64_t (*value)(std::uint64_t a);
};
// Arithmetic is done in 64 bits without sign and then wrapped to the type.
constexpr IntUnary kIntUnary[] = {
    {Op::neg, [](std::uint64_t a) { return 0 - a; }},
    {Op::abs, [](std::uint64_t a) { return static_cast<std::int64_t>(a) < 0 ? 0 - a : a; }},
    {Op::invert, [](std::uint64_t a) { return ~a; }},
};

struct FloatUnary {
    Op op;
    double (*value)(double a);
};
// Of these, only sqrt rounds. In f32 and 16-bit floats, a square root in double that is rounded once more is correctly
// rounded. So are +, -, * and / below (Figueroa, "When is double rounding innocuous?", 1995).
constexpr FloatUnary kFloatUnary[] = {
    {Op::neg, [](double a) { return -a; }},
    {Op::abs, [](double a) { return std::fabs(a); }},
    {Op::sqrt, [](double a) { return std::sqrt(a); }},
    {Op::floor, [](double a) { return std::floor(a); }},
    {Op::ceil, [](double a) { return std::ceil(a); }},
    {Op::trunc, [](double a) { return std::trunc(a); }},
    {Op::round, [](double a) { return std::round(a); }},
    {Op::rint, [](double a) { return std::nearbyint(a); }},
    {Op::detach, [](double a) { return a; }},
    {Op::detach_reverse, [](double a) { return a; }},
};

// Operands, extended to 64 bits with sign or zeros as the type requires.
struct IntOperands {
    std::uint64_t a, b;
    int bits;
    bool is_signed;

    std::int64_t sa() const { return static_cast<std::int64_t>(a); }
    std::int64_t sb() const { return static_cast<std::int64_t>(b); }
    bool less() const { return is_signed ? sa() < sb() : a < b; }
    bool divides() const {
        return b != 0 && !(is_signed && sb() == -1 && sa() == std::numeric_limits<std::int64_t>::min() >> (64 - bits));
    }
    int shift() const { return static_cast<int>(b & static_cast<std::uint64_t>(bits - 1)); }
};
using Folded = std::optional<std::uint64_t>;
struct IntBinary {
    Op op;
    Folded (*value)(const IntOperands& x);
};
constexpr IntBinary kIntBinary[] = {
    {Op::add, [](const IntOperands& x) -> Folded { return x.a + x.b; }},
    {Op::sub, [](const IntOperands& x) -> Folded { return x.a - x.b; }},
    {Op::mul, [](const IntOperands& x) -> Folded { return x.a * x.b; }},
    {Op::div,
     [](const IntOperands& x) -> Folded {
         if (!x.divides()) return std::nullopt;
         return x.is_signed ? static_cast<std::uint64_t>(x.sa() / x.sb()) : x.a / x.b;
     }},
    {Op::rem,
     [](const IntOperands& x) -> Folded {
         if (!x.divides()) return std::nullopt;
         return x.is_signed ? static_cast<std::uint64_t>(x.sa() % x.sb()) : x.a % x.b;
     }},
    {Op::min, [](const IntOperands& x) -> Folded { return x.less() ? x.a : x.b; }},
    {Op::max, [](const IntOperands& x) -> Folded { return x.less() ? x.b : x.a; }},
    {Op::and_, [](const IntOperands& x) -> Folded { return x.a & x.b; }},
    {Op::or_, [](const IntOperands& x) -> Folded { return x.a | x.b; }},
    {Op::xor_, [](const IntOperands& x) -> Folded { return x.a ^ x.b; }},
    {Op::shl, [](const IntOperands& x) -> Folded { return x.a << x.shift(); }},
    {Op::shr,
     [](const IntOperands& x) -> Folded {
         return x.is_signed ? static_cast<std::uint64_t>(x.sa() >> x.shift()) : x.a >> x.shift();
     }},
};

struct FloatBinary {
    Op op;
    std::optional<double> (*value)(double a, double b);
};
using Real = std::optional<double>;
// The sign of min(-0, 0) depends on the machine.
bool zeros_of_both_signs(double a, double b) { return a == 0 && b == 0 && std::signbit(a) != std::signbit(b); }
const FloatBinary kFloatBinary[] = {
    {Op::add, [](double a, double b) -> Real { return a + b; }},
    {Op::sub, [](double a, double b) -> Real { return a - b; }},
    {Op::mul, [](double a, double b) -> Real { return a * b; }},
    {Op::div, [](double a, double b) -> Real { return a / b; }},
    {Op::min, [](double a, double b) -> Real { return zeros_of_both_signs(a, b) ? Real() : std::fmin(a, b); }},
    {Op::max, [](double a, double b) -> Real { return zeros_of_both_signs(a, b) ? Real() : std::fmax(a, b); }},
    {Op::copysign, [](double a, double b) -> Real { return std::copysign(a, b); }},
};

template <class Row, std::size_t n>
const Row* find(const Row (&table)[n], Op op) {
    for (const Row& row : table)
        if (row.op == op) return &row;
    return nullptr;
}

std::optional<Number> rounded(double value, Scalar scalar) {
    if (std::isnan(value)) return std::nullopt;
    return convert(Number::real(value), Scalar::f64, scalar);
}

// 64 bits cut to the type. A bool keeps its last bit.
Number wrapped(std::uint64_t bits, Scalar scalar) {
    if (scalar == Scalar::boolean) return Number::integer(static_cast<std::int64_t>(bits & 1));
    return convert(Number::integer(static_cast<std::int64_t>(bits)), Scalar::i64, scalar);
}

}  // namespace

std::optional<Number> fold_unary(Op op, Scalar scalar, Number a) {
    if (a.is_float) {
        const FloatUnary* row = find(kFloatUnary, op);
        return row ? rounded(row->value(a.f), scalar) : std::nullopt;
    }
    if (op == Op::abs && !info(scalar).is_signed()) return a;
    const IntUnary* row = find(kIntUnary, op);
    if (!row) return std::nullopt;
    return wrapped(row->value(static_cast<std::uint64_t>(a.i)), scalar);
}

std::optional<Number> fold_binary(Op op, Scalar scalar, Number a, Number b) {
    if (a.is_float) {
        const FloatBinary* row = find(kFloatBinary, op);
        const Real value = row ? row->value(a.f, b.f) : Real();
        return value ? rounded(*value, scalar) : std::nullopt;
    }
    const IntBinary* row = find(kIntBinary, op);
    if (!row) return std::nullopt;
    const ScalarInfo& type = info(scalar);
    const Folded value = row->value({static_cast<std::uint64_t>(a.i), static_cast<std::uint64_t>(b.i), type.bits,
                                     type.kind == ScalarKind::signed_int});
    return value ? std::optional(wrapped(*value, scalar)) : std::nullopt;
}

std::optional<Number> fold_fma(Scalar scalar, Number a, Number b, Number c) {
    if (scalar == Scalar::f64) return rounded(std::fma(a.f, b.f, c.f), scalar);
    if (scalar == Scalar::f32) {
        return rounded(std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f)), scalar);
    }
    return std::nullopt;  // targets round 16-bit floats differently
}

namespace {

template <class T>
std::optional<bool> compare(Op op, T a, T b) {
    switch (op) {
        case Op::cmp_lt:
            return a < b;
        case Op::cmp_le:
            return a <= b;
        case Op::cmp_gt:
            return a > b;
        case Op::cmp_ge:
            return a >= b;
        case Op::cmp_eq:
            return a == b;
        case Op::cmp_ne:
            return a != b;
        default:
            return std::nullopt;
    }
}

}  // namespace

std::optional<bool> fold_compare(Op op, Scalar scalar, Number a, Number b) {
    if (a.is_float) return compare(op, a.f, b.f);
    if (scalar == Scalar::u64) return compare(op, static_cast<std::uint64_t>(a.i), static_cast<std::uint64_t>(b.i));
    return compare(op, a.i, b.i);
}

std::optional<bool> fold_classify(Op op, Number a) {
    switch (op) {
        case Op::isnan:
            return std::isnan(a.f);
        case Op::isinf:
            return std::isinf(a.f);
        case Op::isfinite:
            return std::isfinite(a.f);
        default:
            return std::nullopt;
    }
}

std::optional<Number> fold_cast(Scalar from, Scalar to, Number a) {
    if (a.is_float && std::isnan(a.f) && info(to).is_float()) return std::nullopt;
    return convert(a, from, to);
}

std::optional<Number> fold_bitcast(Scalar from, Scalar to, Number a) {
    if (a.is_float && std::isnan(a.f)) return std::nullopt;  // a Number need not hold the payload of a narrow NaN
    unsigned char bytes[8] = {};
    write_scalar(from, a, bytes);
    if (to == Scalar::boolean && bytes[0] > 1) return std::nullopt;
    const Number out = read_scalar(to, bytes);
    if (out.is_float && std::isnan(out.f)) return std::nullopt;
    return out;
}

std::int64_t fold_bit_count(Scalar scalar, Number a) {
    const int bits = info(scalar).bits;
    const std::uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
    return std::popcount(static_cast<std::uint64_t>(a.i) & mask);
}

}  // namespace weft::transform
