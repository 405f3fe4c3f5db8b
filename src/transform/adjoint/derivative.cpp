#include "transform/adjoint/derivative.h"

#include <functional>
#include <numbers>

#include "ir/expression.h"
#include "ir/loop_builder.h"
#include "ir/typing.h"
#include "ir/unroll_limit.h"
#include "support/error.h"

namespace weft::transform {
namespace {

using namespace ir::staged;
using ir::Op;
using ir::Value;

// The rule for scalars: x, y are the operands, r the result.
using Rule = std::function<E(std::span<const E> operands, E r, E d)>;

// The same in loops that make the value in place, for values with too many components to unroll.
Value* in_loops(ir::Builder& builder, std::span<Value* const> operands, Value* result, Value* d, const Rule& rule) {
    std::vector<Value*> indices;
    const auto at = [&](Value* value) {
        return value->type.is_scalar() ? E(builder, value) : E(builder, builder.extract_at(value, indices));
    };
    const std::function<Value*(Value*)> fill = [&](Value* whole) -> Value* {
        const std::size_t axis = indices.size();
        if (axis == (d->type.is_matrix() ? 2U : 1U)) {
            std::vector<E> scalars;
            for (Value* operand : operands) scalars.push_back(at(operand));
            return builder.insert_at(whole, rule(scalars, at(result), at(d)), indices);
        }
        const int count = axis == 0 ? d->type.rows() : d->type.cols();
        Value *const lo = builder.integer(0), *const hi = builder.integer(count);
        const auto fill_axis = [&](Value* index, const std::vector<Value*>& carried) -> std::vector<Value*> {
            indices.push_back(index);
            Value* filled = fill(carried[0]);
            indices.pop_back();
            return {filled};
        };
        return ir::build_for(builder, lo, hi, builder.integer(1), {whole}, fill_axis)[0];
    };
    return fill(builder.zero(d->type));
}

// Applies the rule component by component, as comparisons require.
Value* by_components(ir::Builder& builder, std::span<Value* const> operands, Value* result, Value* d,
                     const Rule& rule) {
    if (d->type.components() > ir::kMostUnrolled) return in_loops(builder, operands, result, d, rule);
    std::vector<E> parts;
    for (int i = 0; i < d->type.components(); ++i) {
        std::vector<E> scalars;
        for (Value* operand : operands) scalars.push_back(E(builder, operand).component(i));
        parts.push_back(rule(scalars, E(builder, result).component(i), E(builder, d).component(i)));
    }
    return d->type.is_scalar() ? parts[0].value() : make(d->type, parts).value();
}

// Replaces x · slope at x = 0, if the slope may be infinite or NaN. If it will be differentiated again, it is no
// constant: its derivative by x is the slope. At a higher order the slope is differentiated too.
E nothing(E x, const std::function<E()>& slope, int order) {
    if (order == 0) return x.zero();
    const E limit = x.number(largest(x.type().scalar())), finite = min(max(slope(), -limit), limit);
    return x * (order == 1 ? unary(Op::detach, finite) : finite);
}

// The rule, which is linear in d, made safe for a factor that is infinite at d = 0.
Rule guarded(Rule rule, int order) {
    return [rule = std::move(rule), order](std::span<const E> operands, E r, E d) {
        const auto slope = [&] { return rule(operands, r, d.number(1.0)); };
        return select(compare(Op::cmp_eq, d, d.zero()), nothing(d, slope, order), rule(operands, r, d));
    };
}

E square(E x) { return x * x; }

// g · y · x^(y - 1), for q = x^y. The power alone overflows for a small x and y < 1, though the product may not. The
// difference y - 1 is rounded if y is large: then y is even, and y - 1 odd.
E power_by_base(std::span<const E> operands, E q, E g, int order) {
    const E x = operands[0], y = operands[1];
    const auto slope = [&] { return g * pow(x, y.number(-1.0)); };
    const E power = pow(x, y - 1.0);
    const E signed_power = select(abs(y) > 256 && x < 0, binary(Op::copysign, power, -q), power);
    const E overflows = y < 1 && compare(Op::cmp_gt, abs(power), x.number(largest(x.type().scalar())));
    const E divides = overflows && compare(Op::cmp_ne, x, x.zero());
    const E factor = select(divides, q, signed_power);
    return select(compare(Op::cmp_eq, y, g.zero()), nothing(y, slope, order), g * y * factor / select(divides, x, 1.0));
}

bool is_one(const Value* value) {
    const ir::Operation* definition = value->definition;
    return definition && definition->op == Op::constant && value->type.is_scalar() && value->type.is_float() &&
           definition->numbers[0].as_double() == 1.0;
}

}  // namespace

Value* sum(ir::Builder& b, Value* left, Value* right) {
    const Type type = left->type;
    if (!type.is_struct() && !type.is(Kind::tuple)) return b.binary(Op::add, left, right);
    std::vector<Value*> parts;
    const std::size_t count = type.is_struct() ? type.fields().size() : type.elements().size();
    for (std::size_t i = 0; i < count; ++i) {
        const Type part = type.is_struct() ? type.fields()[i].type : type.elements()[i];
        const std::vector<std::int64_t> path{static_cast<std::int64_t>(i)};
        parts.push_back(ir::is_smooth(part) ? sum(b, b.extract(left, path), b.extract(right, path)) : b.zero(part));
    }
    return b.make(type, std::move(parts));
}

Value* times_partial(ir::Builder& builder, Op op, std::span<Value* const> operands, Value* result, std::size_t which,
                     Value* derivative, int order) {
    const E d(builder, derivative), r(builder, result);
    const auto operand = [&](std::size_t i) { return E(builder, operands[i]); };
    const E x = operand(0);
    const auto scalars = [&](const Rule& rule) { return by_components(builder, operands, result, derivative, rule); };
    const auto guarded_scalars = [&](const Rule& rule) { return scalars(guarded(rule, order)); };
    const auto number = [&](double value) {
        return x.type().is_scalar() ? x.number(value) : splat(x.type(), x.number(value));
    };
    constexpr double kTwoOverSqrtPi = 2.0 * std::numbers::inv_sqrtpi;
    using Operands = std::span<const E>;

    switch (op) {
        case Op::neg:
            return -d;
        case Op::abs:
            return scalars([](Operands o, E, E g) { return select(o[0] > 0, g, select(o[0] < 0, -g, 0.0)); });
        case Op::sqrt:
            return guarded_scalars([](Operands, E q, E g) { return g * 0.5 / q; });
        case Op::cbrt:
            return guarded_scalars([](Operands, E q, E g) { return g / (3.0 * square(q)); });
        case Op::sin:
            return d * cos(x);
        case Op::cos:
            return -(d * sin(x));
        case Op::tan:
            return d * (number(1.0) + square(r));
        // Constant outside of [-1, 1], and at the ends as well: the derivative inside is infinite there.
        case Op::asin:
        case Op::acos:
            return scalars([op](Operands o, E, E g) {
                const E squared = (1.0 - o[0]) * (1.0 + o[0]), inside = squared > 0;
                const E slope = g / sqrt(select(inside, squared, 1.0));
                return select(inside, op == Op::asin ? slope : -slope, 0.0);
            });
        case Op::atan:
            return d / (number(1.0) + square(x));
        case Op::sinh:
            return d * unary(Op::cosh, x);
        case Op::cosh:
            return d * unary(Op::sinh, x);
        case Op::tanh:
            return d * (number(1.0) - square(r));
        case Op::exp:
            return guarded_scalars([](Operands, E q, E g) { return g * q; });
        case Op::log:
            return guarded_scalars([](Operands o, E, E g) { return g / o[0]; });
        case Op::log2:
            return guarded_scalars([](Operands o, E, E g) { return g * std::numbers::log2e / o[0]; });
        case Op::log10:
            return guarded_scalars([](Operands o, E, E g) { return g * std::numbers::log10e / o[0]; });
        case Op::erf:
            return d * number(kTwoOverSqrtPi) * exp(-square(x));
        case Op::erfc:
            return -(d * number(kTwoOverSqrtPi) * exp(-square(x)));
        case Op::erfinv:
            return guarded_scalars([](Operands, E q, E g) { return g / kTwoOverSqrtPi * exp(square(q)); });
        case Op::erfcinv:
            return guarded_scalars([](Operands, E q, E g) { return -(g / kTwoOverSqrtPi * exp(square(q))); });

        case Op::add:
            return d;
        case Op::sub:
            return which == 0 ? d : -d;
        case Op::mul:
            return d * operand(1 - which);
        case Op::div:
            if (which == 0) return guarded_scalars([](Operands o, E, E g) { return g / o[1]; });
            if (is_one(operands[0])) return guarded_scalars([](Operands, E q, E g) { return -(g * q * q); });
            return guarded_scalars([](Operands o, E q, E g) { return -(g * q / o[1]); });
        case Op::rem:
            if (which == 0) return d;
            // The factor is the whole number of times that the divisor fits. The quotient alone may round up to the
            // next integer.
            return guarded_scalars(
                [](Operands o, E rest, E g) { return -(g * unary(Op::rint, (o[0] - rest) / o[1])); });
        // Ties belong to the first operand; a NaN is not chosen over a number.
        case Op::min:
        case Op::max:
            return scalars([op, which](Operands o, E, E g) {
                const E first = compare(op == Op::min ? Op::cmp_le : Op::cmp_ge, o[0], o[1]) ||
                                o[1].wrap(o[1].builder().classify(Op::isnan, o[1]));
                return which == 0 ? select(first, g, 0.0) : select(first, 0.0, g);
            });
        case Op::pow:
            if (which == 0) {
                return guarded_scalars([order](Operands o, E q, E g) { return power_by_base(o, q, g, order); });
            }
            return guarded_scalars([](Operands o, E q, E g) {
                const E is_zero = compare(Op::cmp_eq, o[0], g.zero()) || compare(Op::cmp_eq, q, g.zero());
                return select(is_zero, 0.0, g * q * log(select(is_zero, 1.0, o[0])));
            });
        case Op::atan2:
            // The larger operand is taken out, so that no square overflows or vanishes. The gradient is zero at the
            // origin and at infinity.
            return scalars([which](Operands o, E, E g) {
                const E size = max(abs(o[0]), abs(o[1]));
                const E is_flat = compare(Op::cmp_eq, size, size.zero()) ||
                                  compare(Op::cmp_gt, size, size.number(largest(size.type().scalar())));
                const E divisor = select(is_flat, 1.0, size);
                const E y = select(is_flat, 0.0, o[0]) / divisor, x = select(is_flat, 1.0, o[1]) / divisor;
                const E slope = which == 0 ? g * x : -(g * y);
                return select(is_flat, 0.0, slope / (square(x) + square(y)) / divisor);
            });
        case Op::copysign:
            if (which == 1) return nullptr;
            return d * binary(Op::copysign, number(1.0), x) * binary(Op::copysign, number(1.0), operand(1));
        case Op::fma:
            return which == 2 ? d : d * operand(1 - which);
#define WEFT_DERIVATIVE_none(id) case Op::id:
#define WEFT_DERIVATIVE_own(id) case Op::id:
#include "ir/ops.def"
            break;
    }
    throw InternalError(std::string("'") + ir::op_name(op) + "' has no partial derivatives");
}

}  // namespace weft::transform
