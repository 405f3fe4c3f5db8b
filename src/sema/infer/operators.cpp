// Arithmetic: constants are folded here; all else is a call of the builtin table under the operator's name, so that one
// table has the rules for operand types.
#include "sema/analyzer.h"
#include "sema/literals.h"

namespace weft::sema {

namespace {

struct OperatorName {
    const char* sign;
    const char* builtin;
};

OperatorName name_of(syntax::BinaryOperator op) {
    using Operator = syntax::BinaryOperator;
    switch (op) {
        case Operator::add:
            return {"+", "add"};
        case Operator::sub:
            return {"-", "sub"};
        case Operator::mul:
            return {"*", "mul"};
        case Operator::matmul:
            return {"@", "matmul"};
        case Operator::div:
            return {"/", "div"};
        case Operator::floordiv:
            return {"//", "floordiv"};
        case Operator::mod:
            return {"%", "mod"};
        case Operator::pow:
            return {"**", "pow"};
        case Operator::lshift:
            return {"<<", "lshift"};
        case Operator::rshift:
            return {">>", "rshift"};
        case Operator::bit_or:
            return {"|", "bit_or"};
        case Operator::bit_xor:
            return {"^", "bit_xor"};
        case Operator::bit_and:
            return {"&", "bit_and"};
    }
    throw InternalError("unknown binary operator");
}

OperatorName name_of(syntax::UnaryOperator op) {
    switch (op) {
        case syntax::UnaryOperator::negate:
            return {"-", "neg"};
        case syntax::UnaryOperator::plus:
            return {"+", "pos"};
        case syntax::UnaryOperator::invert:
            return {"~", "invert"};
        case syntax::UnaryOperator::logical_not:
            return {"not", "unot"};
    }
    throw InternalError("unknown unary operator");
}

[[noreturn]] void fail_too_large(Span span) {
    fail(span, "this integer does not fit 64 bits", {help("write one operand as a float")}, ErrorCategory::value);
}

// Two literals: exact arithmetic in int64 or double.
std::optional<Value> fold_literals(syntax::BinaryOperator op, const Value& a, const Value& b, Span span) {
    const Number x = a.numbers[0], y = b.numbers[0];
    using Operator = syntax::BinaryOperator;
    const bool is_reciprocal = op == Operator::pow && !y.is_float && y.i < 0;  // 2 ** -1 is 0.5, as in Python
    if (is_reciprocal && !x.is_float && x.i == 0) fail(span, "0 has no negative power", {}, ErrorCategory::value);
    const bool is_float = x.is_float || y.is_float || is_reciprocal;
    const std::optional<Number> result = fold(op, is_float ? Scalar::f64 : Scalar::i64, x, y, true);
    if (result) return Value::literal(*result);
    if (!is_float && (op == Operator::div || op == Operator::mod || op == Operator::floordiv) && y.i == 0) {
        fail(span, "division by the integer literal 0", {}, ErrorCategory::value);
    }
    if (!is_float && (op == Operator::lshift || op == Operator::rshift) && (y.i < 0 || y.i > 63)) {
        fail(span, "a shift by " + std::to_string(y.i) + ", expected 0 to 63", {}, ErrorCategory::value);
    }
    if (!is_float && op != Operator::matmul) fail_too_large(span);
    return std::nullopt;
}

}  // namespace

// [0.0] * 4
Value FunctionAnalyzer::repeated(const Value& list, std::int64_t times, Span span) {
    Value result = list;
    result.elements.clear();
    const auto size = static_cast<std::int64_t>(list.elements.size());
    if (size > 0 && times > kMostUnrolledBodies / size) {
        fail(span,
             "lists are written out, and this one has more than " + std::to_string(kMostUnrolledBodies) + " elements",
             {help("wp.zeros(shape=n, dtype=float) makes a small array of this thread")}, ErrorCategory::value);
    }
    for (std::int64_t i = 0; i < times; ++i)
        result.elements.insert(result.elements.end(), list.elements.begin(), list.elements.end());
    return result;
}

Value FunctionAnalyzer::binary(syntax::BinaryOperator op, Value a, Value b, Span span, Span a_span, Span b_span) {
    if (a.type.is_tile() || b.type.is_tile()) return tile_binary(op, a, b, span, a_span, b_span);
    const OperatorName name = name_of(op);
    const auto is_number = [](const Value& v) { return v.is_constant_scalar() && !v.type.is_bool(); };
    if (is_number(a) && is_number(b)) {
        if (a.is_literal && b.is_literal && (a.is_named || b.is_named)) {
            const Type type = a.numbers[0].is_float || b.numbers[0].is_float ? f32_type() : i32_type();
            a = adapt(a, type, a_span).value_or(a);
            b = adapt(b, type, b_span).value_or(b);
        }
        if (a.is_literal && b.is_literal) {
            if (std::optional<Value> folded = fold_literals(op, a, b, span)) return *folded;
        } else {
            if (a.is_literal) a = adapt(a, b.type, a_span).value_or(a);
            if (b.is_literal) b = adapt(b, a.type, b_span).value_or(b);
            if (a.type == b.type && !a.is_literal && !b.is_literal) {
                if (const auto folded = fold(op, a.type.scalar(), a.numbers[0], b.numbers[0], false)) {
                    return Value::constant(a.type, {*folded});
                }
            }
        }
    }
    if (a.is_tuple() && b.is_tuple() && op == syntax::BinaryOperator::add) {
        std::vector<Value> elements = a.elements;
        elements.insert(elements.end(), b.elements.begin(), b.elements.end());
        return a.is_list && b.is_list ? Value::list(std::move(elements)) : Value::tuple(std::move(elements));
    }
    if (a.is_tuple() && b.is_constant_integer() && op == syntax::BinaryOperator::mul)
        return repeated(a, b.numbers[0].i, span);
    if (b.is_tuple() && a.is_constant_integer() && op == syntax::BinaryOperator::mul)
        return repeated(b, a.numbers[0].i, span);
    return call_builtin(name.builtin, {Actual{std::move(a), a_span}, Actual{std::move(b), b_span}}, span, name.sign);
}

Value FunctionAnalyzer::unary(syntax::UnaryOperator op, Value a, Span span) {
    if (a.type.is_tile()) return tile_unary(op, a, span);
    if (op == syntax::UnaryOperator::logical_not) return values_.logical_not(a, span);
    if (a.is_named) a = settle(a, span);
    if (a.is_constant_scalar() && !a.type.is_bool()) {
        const Number n = a.numbers[0];
        const Scalar scalar = !a.is_literal ? a.type.scalar() : n.is_float ? Scalar::f64 : Scalar::i64;
        std::optional<Number> folded;
        if (op == syntax::UnaryOperator::plus) folded = n;
        if (op == syntax::UnaryOperator::negate && n.is_float) folded = Number::real(-n.f);
        if (op == syntax::UnaryOperator::negate && !n.is_float) {
            folded = fold(syntax::BinaryOperator::sub, scalar, Number::integer(0), n, a.is_literal);
            if (!folded) fail_too_large(span);
        }
        if (op == syntax::UnaryOperator::invert && !n.is_float) {
            folded = convert(Number::integer(~n.i), Scalar::i64, scalar);
        }
        if (folded) return a.is_literal ? Value::literal(*folded) : Value::constant(a.type, {*folded});
    }
    const OperatorName name = name_of(op);
    return call_builtin(name.builtin, {Actual{std::move(a), span}}, span, name.sign);
}

}  // namespace weft::sema
