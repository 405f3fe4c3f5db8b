// Arithmetic: constants are folded, and operations that leave a value unchanged are dropped. Every rule holds for all
// values, NaN, infinities and both zeros included.
#include <cmath>
#include <limits>

#include "transform/simplify/fold.h"
#include "transform/simplify/simplifier.h"

namespace weft::transform {

using ir::Op;
using ir::Operation;
using ir::Value;

// ---- constants ----

namespace {

// fold(i) for each component; empty if one of them cannot be folded.
template <class Fold>
std::optional<std::vector<Number>> each(std::size_t count, Fold&& fold) {
    std::vector<Number> numbers;
    numbers.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::optional<Number> number = fold(i);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

std::optional<Number> as_number(std::optional<bool> value) {
    return value ? std::optional(Number::integer(*value)) : std::nullopt;
}

std::optional<std::vector<Number>> folded_numbers(const Operation& operation) {
    constexpr std::size_t kMostOperands = 3;
    const std::vector<Number>* in[kMostOperands] = {};
    if (operation.operands.empty() || operation.operands.size() > kMostOperands) return std::nullopt;
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
        in[i] = constant_numbers(operation.operands[i]);
        if (!in[i]) return std::nullopt;
    }
    const Type from = operation.operands[0]->type;
    if (!from.is_scalar() && !from.is_numeric_aggregate()) return std::nullopt;
    const Scalar scalar = from.scalar();
    const std::vector<Number>& a = *in[0];
    const Op op = operation.op;
    switch (ir::op_class(op)) {
        case ir::OpClass::unary:
            return each(a.size(), [&](std::size_t i) { return fold_unary(op, scalar, a[i]); });
        case ir::OpClass::binary:
            return each(a.size(), [&](std::size_t i) { return fold_binary(op, scalar, a[i], (*in[1])[i]); });
        case ir::OpClass::compare:
            return each(1, [&](std::size_t) { return as_number(fold_compare(op, scalar, a[0], (*in[1])[0])); });
        case ir::OpClass::classify:
            return each(1, [&](std::size_t) { return as_number(fold_classify(op, a[0])); });
        case ir::OpClass::atomic:
        case ir::OpClass::other:
            break;
    }
    switch (op) {
        case Op::fma:
            return each(a.size(), [&](std::size_t i) { return fold_fma(scalar, a[i], (*in[1])[i], (*in[2])[i]); });
        case Op::cast: {
            const Scalar to = operation.results[0]->type.scalar();
            return each(a.size(), [&](std::size_t i) { return fold_cast(scalar, to, a[i]); });
        }
        case Op::bitcast: {
            const Scalar to = operation.results[0]->type.scalar();
            return each(1, [&](std::size_t) { return fold_bitcast(scalar, to, a[0]); });
        }
        case Op::bit_count:
            return std::vector<Number>{Number::integer(fold_bit_count(scalar, a[0]))};
        case Op::splat:
            return std::vector<Number>(static_cast<std::size_t>(operation.results[0]->type.components()), a[0]);
        default:
            return std::nullopt;
    }
}

}  // namespace

Value* Simplifier::folded(Operation& operation) {
    std::optional<std::vector<Number>> numbers = folded_numbers(operation);
    return numbers ? constant(operation.results[0]->type, std::move(*numbers), operation.span) : nullptr;
}

// ---- one constant operand ----

namespace {

enum class Domain { ints, floats, bools };
enum class Side { right, either };
enum class Pattern { zero, minus_zero, one, two, minus_one, all_bits };
enum class Result { other, constant, negated, inverted, zero, one, squared };

struct Identity {
    Op op;
    Domain domain;
    Side side;         // the side of the constant
    Pattern constant;  // in all components
    Result result;
};

//    x op constant → result. x + 0.0 is not here: it turns -0 into 0. Nor is x * 0.0: NaN, infinities, -0.
constexpr Identity kIdentities[] = {
    {Op::add, Domain::ints, Side::either, Pattern::zero, Result::other},
    {Op::add, Domain::floats, Side::either, Pattern::minus_zero, Result::other},
    {Op::sub, Domain::ints, Side::right, Pattern::zero, Result::other},
    {Op::sub, Domain::floats, Side::right, Pattern::zero, Result::other},
    {Op::mul, Domain::ints, Side::either, Pattern::zero, Result::constant},
    {Op::mul, Domain::ints, Side::either, Pattern::one, Result::other},
    {Op::mul, Domain::ints, Side::either, Pattern::minus_one, Result::negated},
    {Op::mul, Domain::floats, Side::either, Pattern::one, Result::other},
    {Op::mul, Domain::floats, Side::either, Pattern::minus_one, Result::negated},
    {Op::div, Domain::ints, Side::right, Pattern::one, Result::other},
    {Op::div, Domain::floats, Side::right, Pattern::one, Result::other},
    {Op::div, Domain::floats, Side::right, Pattern::minus_one, Result::negated},
    {Op::rem, Domain::ints, Side::right, Pattern::one, Result::zero},
    {Op::pow, Domain::floats, Side::right, Pattern::zero, Result::one},
    {Op::pow, Domain::floats, Side::right, Pattern::minus_zero, Result::one},
    {Op::pow, Domain::floats, Side::right, Pattern::one, Result::other},
    {Op::pow, Domain::floats, Side::right, Pattern::two, Result::squared},
    {Op::and_, Domain::ints, Side::either, Pattern::zero, Result::constant},
    {Op::and_, Domain::ints, Side::either, Pattern::all_bits, Result::other},
    {Op::or_, Domain::ints, Side::either, Pattern::zero, Result::other},
    {Op::or_, Domain::ints, Side::either, Pattern::all_bits, Result::constant},
    {Op::xor_, Domain::ints, Side::either, Pattern::zero, Result::other},
    {Op::xor_, Domain::ints, Side::either, Pattern::all_bits, Result::inverted},
    {Op::and_, Domain::bools, Side::either, Pattern::zero, Result::constant},
    {Op::and_, Domain::bools, Side::either, Pattern::one, Result::other},
    {Op::or_, Domain::bools, Side::either, Pattern::zero, Result::other},
    {Op::or_, Domain::bools, Side::either, Pattern::one, Result::constant},
    {Op::xor_, Domain::bools, Side::either, Pattern::zero, Result::other},
    {Op::xor_, Domain::bools, Side::either, Pattern::one, Result::inverted},
    {Op::shl, Domain::ints, Side::right, Pattern::zero, Result::other},
    {Op::shr, Domain::ints, Side::right, Pattern::zero, Result::other},
};

// x op x → result
struct Reflexive {
    Op op;
    Domain domain;
    Result result;
};
constexpr Reflexive kReflexive[] = {
    {Op::sub, Domain::ints, Result::zero},    {Op::xor_, Domain::ints, Result::zero},
    {Op::and_, Domain::ints, Result::other},  {Op::or_, Domain::ints, Result::other},
    {Op::min, Domain::ints, Result::other},   {Op::max, Domain::ints, Result::other},
    {Op::min, Domain::floats, Result::other}, {Op::max, Domain::floats, Result::other},
    {Op::xor_, Domain::bools, Result::zero},  {Op::and_, Domain::bools, Result::other},
    {Op::or_, Domain::bools, Result::other},
};

Domain domain_of(Scalar scalar) {
    const ScalarInfo& row = info(scalar);
    return row.is_float() ? Domain::floats : row.is_int() ? Domain::ints : Domain::bools;
}

bool matches(const Number& number, Pattern pattern, const ScalarInfo& scalar) {
    const bool all_bits = !number.is_float && (scalar.kind == ScalarKind::signed_int || scalar.bits == 64
                                                   ? number.i == -1
                                                   : number.i == (std::int64_t{1} << scalar.bits) - 1);
    switch (pattern) {
        case Pattern::zero:
            return number.is_float ? number.f == 0 && !std::signbit(number.f) : number.i == 0;
        case Pattern::minus_zero:
            return number.is_float && number.f == 0 && std::signbit(number.f);
        case Pattern::one:
            return number.as_double() == 1;
        case Pattern::two:
            return number.as_double() == 2;
        // For unsigned integers, a factor with all bits set is -1.
        case Pattern::minus_one:
            return number.is_float ? number.f == -1 : all_bits;
        case Pattern::all_bits:
            return all_bits;
    }
    return false;
}

}  // namespace

Value* Simplifier::binary_identity(Operation& operation) {
    Value* const a = operation.operands[0];
    Value* const b = operation.operands[1];
    const Type type = a->type;
    const ScalarInfo& scalar = info(type.scalar());
    const Domain domain = domain_of(scalar.id);

    const auto filled = [&](std::int64_t value) {
        const Number number = scalar.is_float() ? Number::real(static_cast<double>(value)) : Number::integer(value);
        return constant(type, std::vector<Number>(static_cast<std::size_t>(type.components()), number), operation.span);
    };
    const auto result = [&](Result what, Value* other, Value* constant) -> Value* {
        switch (what) {
            case Result::other:
                return other;
            case Result::constant:
                return constant;
            case Result::zero:
                return filled(0);
            case Result::one:
                return filled(1);
            case Result::negated:
                change(operation, Op::neg, {other});
                return nullptr;
            case Result::inverted:
                change(operation, Op::invert, {other});
                return nullptr;
            case Result::squared:
                change(operation, Op::mul, {other, other});
                return nullptr;
        }
        return nullptr;
    };

    if (a == b) {
        for (const Reflexive& rule : kReflexive)
            if (rule.op == operation.op && rule.domain == domain) return result(rule.result, a, b);
        return nullptr;
    }
    const Number* right = uniform_constant(b);
    const Number* left = uniform_constant(a);
    if (!left && !right) return nullptr;
    for (const Identity& rule : kIdentities) {
        if (rule.op != operation.op || rule.domain != domain) continue;
        if (right && matches(*right, rule.constant, scalar)) return result(rule.result, a, b);
        if (left && rule.side == Side::either && matches(*left, rule.constant, scalar))
            return result(rule.result, b, a);
    }
    return nullptr;
}

// ---- other shapes ----

Value* Simplifier::unary_identity(Operation& operation) {
    const Operation* inner = operation.operands[0]->definition;
    if (!inner) return nullptr;
    switch (operation.op) {
        case Op::neg:
            if (inner->op == Op::neg) return inner->operands[0];
            break;
        case Op::abs:
            // abs(abs x) → abs x; abs(-x) → abs x
            if (inner->op == Op::abs) return operation.operands[0];
            if (inner->op == Op::neg) change(operation, Op::abs, {inner->operands[0]});
            break;
        case Op::invert: {
            if (inner->op == Op::invert) return inner->operands[0];
            // not (a < b) → a >= b; for floats only == and != may be inverted
            const bool ordered =
                inner->op == Op::cmp_eq || inner->op == Op::cmp_ne ||
                (ir::op_class(inner->op) == ir::OpClass::compare && !inner->operands[0]->type.is_float());
            if (!ordered) break;
            Op opposite = inner->op;
            switch (inner->op) {
                case Op::cmp_lt:
                    opposite = Op::cmp_ge;
                    break;
                case Op::cmp_le:
                    opposite = Op::cmp_gt;
                    break;
                case Op::cmp_gt:
                    opposite = Op::cmp_le;
                    break;
                case Op::cmp_ge:
                    opposite = Op::cmp_lt;
                    break;
                case Op::cmp_eq:
                    opposite = Op::cmp_ne;
                    break;
                default:
                    opposite = Op::cmp_eq;
            }
            change(operation, opposite, inner->operands);
            break;
        }
        default:
            break;
    }
    return nullptr;
}

Value* Simplifier::compare_identity(Operation& operation) {
    Value* const a = operation.operands[0];
    Value* const b = operation.operands[1];
    if (a == b && !a->type.is_float()) {
        const bool holds = operation.op == Op::cmp_eq || operation.op == Op::cmp_le || operation.op == Op::cmp_ge;
        return boolean(holds, operation.span);
    }
    // b == true → b;  b == false → not b;  and the same for !=
    if (!a->type.is_bool()) return nullptr;
    const Number* left = uniform_constant(a);
    const Number* right = uniform_constant(b);
    if (!left == !right) return nullptr;
    Value* const other = left ? b : a;
    const bool keeps = ((left ? left : right)->i != 0) == (operation.op == Op::cmp_eq);
    if (keeps) return other;
    change(operation, Op::invert, {other});
    return nullptr;
}

Value* Simplifier::select_identity(Operation& operation) {
    Value* const condition = operation.operands[0];
    Value* const a = operation.operands[1];
    Value* const b = operation.operands[2];
    if (const Number* known = uniform_constant(condition)) return known->i ? a : b;
    if (a == b) return a;
    if (const Operation* inner = condition->definition; inner && inner->op == Op::invert) {
        change(operation, Op::select, {inner->operands[0], b, a});
        return select_identity(operation);
    }
    if (a->type.is_bool()) {
        const Number* yes = uniform_constant(a);
        const Number* no = uniform_constant(b);
        if (yes && no && yes->i && !no->i) return condition;
        if (yes && no && !yes->i && no->i) change(operation, Op::invert, {condition});
    }
    return nullptr;
}

}  // namespace weft::transform
