#include <numbers>

#include "builtins/expression.h"
#include "builtins/groups.h"

namespace weft::builtins {

namespace {

using ir::Op;

template <Op op>
ir::Value* expand_unary(Call& call) {
    return unary(op, argument(call, 0));
}

template <Op op>
ir::Value* expand_binary(Call& call) {
    return binary(op, argument(call, 0), argument(call, 1));
}

// Reduces the components of the argument to one number, left to right.
template <Op op>
ir::Value* expand_reduction(Call& call) {
    const E a = argument(call, 0);
    E result = a.component(0);
    if (needs_loop(a)) {
        return over_components(a, {result}, [&](const auto& carried, const auto& indices) {
            return std::vector<ir::Value*>{call.builder.binary(op, carried[0], call.builder.extract_at(a, indices))};
        })[0];
    }
    for (int i = 1; i < a.components(); ++i) result = binary(op, result, a.component(i));
    return result;
}

// A formula on scalars, on each component of the argument.
template <E (*formula)(E)>
ir::Value* expand_each(Call& call) {
    const E a = argument(call, 0);
    if (a.type().is_scalar()) return formula(a);
    if (needs_loop(a)) {
        return over_components(a, {a.zero()}, [&](const auto& carried, const auto& indices) {
            ir::Value* made = formula(a.wrap(call.builder.extract_at(a, indices)));
            return std::vector<ir::Value*>{call.builder.insert_at(carried[0], made, indices)};
        })[0];
    }
    std::vector<E> parts;
    for (int i = 0; i < a.components(); ++i) parts.push_back(formula(a.component(i)));
    return make(a.type(), parts);
}

// A test of all components: `join` is and_ for "all of them", or_ for "any of them".
template <Op test, Op join>
ir::Value* expand_test(Call& call) {
    const E a = argument(call, 0);
    const auto tested = [&](int i) { return a.wrap(call.builder.classify(test, a.component(i))); };
    E result = tested(0);
    if (needs_loop(a)) {
        return over_components(a, {result}, [&](const auto& carried, const auto& indices) {
            ir::Value* found = call.builder.classify(test, call.builder.extract_at(a, indices));
            return std::vector<ir::Value*>{call.builder.binary(join, carried[0], found)};
        })[0];
    }
    for (int i = 1; i < a.components(); ++i) result = binary(join, result, tested(i));
    return result;
}

E sign(E x) {
    const E one = x.number(1);
    return x.scalar().is_signed() ? select(x < 0, x.number(-1), one) : one;
}

ir::Value* expand_abs(Call& call) { return abs(argument(call, 0)); }
ir::Value* expand_clamp(Call& call) { return clamp(argument(call, 0), argument(call, 1), argument(call, 2)); }

ir::Value* expand_step(Call& call) {
    const E x = argument(call, 0);
    return x.scalar().is_signed() ? select(x < 0, x.number(1), x.number(0)) : x.number(0);
}

ir::Value* expand_nonzero(Call& call) {
    const E x = argument(call, 0);
    return select(x == 0, x.number(0), x.number(1));
}

ir::Value* expand_bit_count(Call& call) { return call.builder.bit_count(call.arguments[0]); }
ir::Value* expand_degrees(Call& call) { return argument(call, 0) * (180.0 / std::numbers::pi); }
ir::Value* expand_radians(Call& call) { return argument(call, 0) * (std::numbers::pi / 180.0); }

ir::Value* expand_frac(Call& call) {
    const E x = argument(call, 0);
    return x - trunc(x);
}

// x ** 2 is by far the most common power, and one product rounds as pow would.
ir::Value* expand_pow(Call& call) {
    const E x = argument(call, 0), y = argument(call, 1);
    const ir::Operation* known = y.value()->definition;
    if (known && known->op == Op::constant && known->numbers[0].as_double() == 2.0) return x * x;
    return pow(x, y);
}

constexpr Entry kEntries[] = {
    {"min", "(a: S, b: S) -> S", "Smaller of two numbers; of a NaN and a number, the number.", expand_binary<Op::min>},
    {"min", "(a: Vec[n,S], b: Vec[n,S]) -> Vec[n,S]", "Smaller of each pair of components.", expand_binary<Op::min>},
    {"min", "(a: Vec[n,S]) -> S", "Least component.", expand_reduction<Op::min>},
    {"max", "(a: S, b: S) -> S", "Greater of two numbers; of a NaN and a number, the number.", expand_binary<Op::max>},
    {"max", "(a: Vec[n,S], b: Vec[n,S]) -> Vec[n,S]", "Greater of each pair of components.", expand_binary<Op::max>},
    {"max", "(a: Vec[n,S]) -> S", "Greatest component.", expand_reduction<Op::max>},
    {"clamp", "(x: S, low: S, high: S) -> S", "x limited to [low, high].", expand_clamp},
    {"abs", "(x: S) -> S", "Absolute value.", expand_abs},
    {"abs", "(x: Vec[n,S]) -> Vec[n,S]", "Absolute value of each component.", expand_abs},
    {"sign", "(x: S) -> S", "-1 below zero, otherwise 1.", expand_each<sign>, false},
    {"sign", "(x: Vec[n,S]) -> Vec[n,S]", "-1 or 1 for each component.", expand_each<sign>, false},
    {"copysign", "(x: F, y: F) -> F", "Magnitude of x with the sign of y.", expand_binary<Op::copysign>},
    {"step", "(x: S) -> S", "1 below zero, otherwise 0.", expand_step, false},
    {"nonzero", "(x: S) -> S", "0 for zero, otherwise 1.", expand_nonzero, false},
    {"bit_count", "(x: I) -> int32", "How many bits of an integer are set.", expand_bit_count, false},
    {"sin", "(x: F) -> F", "Sine of an angle in radians.", expand_unary<Op::sin>},
    {"cos", "(x: F) -> F", "Cosine of an angle in radians.", expand_unary<Op::cos>},
    {"acos", "(x: F) -> F", "Angle in radians with that cosine; x is clamped to [-1, 1].", expand_unary<Op::acos>},
    {"asin", "(x: F) -> F", "Angle in radians with that sine; x is clamped to [-1, 1].", expand_unary<Op::asin>},
    {"sqrt", "(x: F) -> F", "Square root.", expand_unary<Op::sqrt>},
    {"cbrt", "(x: F) -> F", "Cube root.", expand_unary<Op::cbrt>},
    {"tan", "(x: F) -> F", "Tangent of an angle in radians.", expand_unary<Op::tan>},
    {"atan", "(x: F) -> F", "Angle in radians with that tangent.", expand_unary<Op::atan>},
    {"atan2", "(y: F, x: F) -> F", "Angle in radians of the point (x, y).", expand_binary<Op::atan2>},
    {"sinh", "(x: F) -> F", "Hyperbolic sine.", expand_unary<Op::sinh>},
    {"cosh", "(x: F) -> F", "Hyperbolic cosine.", expand_unary<Op::cosh>},
    {"tanh", "(x: F) -> F", "Hyperbolic tangent.", expand_unary<Op::tanh>},
    {"degrees", "(x: F) -> F", "Radians to degrees.", expand_degrees},
    {"radians", "(x: F) -> F", "Degrees to radians.", expand_radians},
    {"log", "(x: F) -> F", "Natural logarithm.", expand_unary<Op::log>},
    {"log2", "(x: F) -> F", "Logarithm to base 2.", expand_unary<Op::log2>},
    {"log10", "(x: F) -> F", "Logarithm to base 10.", expand_unary<Op::log10>},
    {"exp", "(x: F) -> F", "e to the power x.", expand_unary<Op::exp>},
    {"pow", "(x: F, y: F) -> F", "x to the power y.", expand_pow},
    {"erf", "(x: F) -> F", "Error function.", expand_unary<Op::erf>},
    {"erfc", "(x: F) -> F", "1 - erf(x), exact for large x.", expand_unary<Op::erfc>},
    {"erfinv", "(x: F) -> F", "Inverse of erf.", expand_unary<Op::erfinv>},
    {"erfcinv", "(x: F) -> F", "Inverse of erfc.", expand_unary<Op::erfcinv>},
    {"round", "(x: F) -> F", "Nearest integer, halves away from zero.", expand_unary<Op::round>, false},
    {"rint", "(x: F) -> F", "Nearest integer, halves to even.", expand_unary<Op::rint>, false},
    {"trunc", "(x: F) -> F", "Integer part, toward zero.", expand_unary<Op::trunc>, false},
    {"floor", "(x: F) -> F", "Greatest integer not above x.", expand_unary<Op::floor>, false},
    {"ceil", "(x: F) -> F", "Least integer not below x.", expand_unary<Op::ceil>, false},
    {"frac", "(x: F) -> F", "x - trunc(x), with the sign of x.", expand_frac},
    {"isfinite", "(a: F) -> B", "Whether a number is neither infinite nor NaN.", expand_test<Op::isfinite, Op::and_>,
     false},
    {"isfinite", "(a: Vec[n,F]) -> B", "Whether all components are finite.", expand_test<Op::isfinite, Op::and_>,
     false},
    {"isfinite", "(a: Quat[F]) -> B", "Whether all components are finite.", expand_test<Op::isfinite, Op::and_>, false},
    {"isfinite", "(a: Mat[r,c,F]) -> B", "Whether all entries are finite.", expand_test<Op::isfinite, Op::and_>, false},
    {"isnan", "(a: F) -> B", "Whether a number is NaN.", expand_test<Op::isnan, Op::or_>, false},
    {"isnan", "(a: Vec[n,F]) -> B", "Whether a component is NaN.", expand_test<Op::isnan, Op::or_>, false},
    {"isnan", "(a: Quat[F]) -> B", "Whether a component is NaN.", expand_test<Op::isnan, Op::or_>, false},
    {"isnan", "(a: Mat[r,c,F]) -> B", "Whether an entry is NaN.", expand_test<Op::isnan, Op::or_>, false},
    {"isinf", "(a: F) -> B", "Whether a number is infinite.", expand_test<Op::isinf, Op::or_>, false},
    {"isinf", "(a: Vec[n,F]) -> B", "Whether a component is infinite.", expand_test<Op::isinf, Op::or_>, false},
    {"isinf", "(a: Quat[F]) -> B", "Whether a component is infinite.", expand_test<Op::isinf, Op::or_>, false},
    {"isinf", "(a: Mat[r,c,F]) -> B", "Whether an entry is infinite.", expand_test<Op::isinf, Op::or_>, false},
};

}  // namespace

std::span<const Entry> scalar_entries() { return kEntries; }

}  // namespace weft::builtins
