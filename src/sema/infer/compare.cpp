// Comparisons and the operators with branches: and, or, a if c else b.
//
// `a and b` runs b only if a holds. If b is cheap and cannot fail (no load, no division, no call), running it always is
// cheaper than a branch:
//
//   x > 0 and y > 0        →  and %x_positive, %y_positive
//   i < n and a[i] > 0     →  if %i_below { %v = load %a[%i]; yield cmp.gt %v, 0 } else { yield false }
#include <algorithm>

#include "builtins/expression.h"
#include "sema/analyzer.h"
#include "sema/literals.h"

namespace weft::sema {

namespace {

const char* sign_of(syntax::CompareOperator op) {
    using Operator = syntax::CompareOperator;
    switch (op) {
        case Operator::lt:
            return "<";
        case Operator::le:
            return "<=";
        case Operator::gt:
            return ">";
        case Operator::ge:
            return ">=";
        case Operator::eq:
            return "==";
        case Operator::ne:
            return "!=";
        case Operator::is:
            return "is";
        case Operator::is_not:
            return "is not";
        case Operator::in:
            return "in";
        case Operator::not_in:
            return "not in";
    }
    throw InternalError("unknown comparison");
}

ir::Op op_of(syntax::CompareOperator op) {
    using Operator = syntax::CompareOperator;
    switch (op) {
        case Operator::lt:
            return ir::Op::cmp_lt;
        case Operator::le:
            return ir::Op::cmp_le;
        case Operator::gt:
            return ir::Op::cmp_gt;
        case Operator::ge:
            return ir::Op::cmp_ge;
        case Operator::eq:
            return ir::Op::cmp_eq;
        case Operator::ne:
            return ir::Op::cmp_ne;
        default:
            throw InternalError("not a comparison of numbers");
    }
}

bool is_equality(syntax::CompareOperator op) {
    return op == syntax::CompareOperator::eq || op == syntax::CompareOperator::ne;
}

}  // namespace

Value FunctionAnalyzer::compare(const syntax::Compare& c, Span span) {
    // a < b < c: each operand runs once and, unlike in Python, always.
    Value left = expression(*c.left);
    Value result;
    for (std::size_t i = 0; i < c.ops.size(); ++i) {
        Value right = expression(*c.operands[i]);
        const bool differ = left.is_binding() != right.is_binding() || left.is_tuple() != right.is_tuple();
        Value one = c.is_pattern && is_equality(c.ops[i]) && differ ? Value::boolean(false)
                                                                    : compare_pair(c.ops[i], left, right, span);
        if (i == 0) {
            result = std::move(one);
        } else if (result.is_constant_bool()) {
            if (result.numbers[0].i != 0) result = std::move(one);
        } else if (one.is_constant_bool()) {
            if (one.numbers[0].i == 0) result = std::move(one);
        } else {
            result = Value::runtime(builder_.binary(ir::Op::and_, result.ir, one.ir));
        }
        left = std::move(right);
    }
    return result;
}

Value FunctionAnalyzer::compare_pair(syntax::CompareOperator op, Value a, Value b, Span span) {
    if (a.type.is_tile() || b.type.is_tile()) {
        fail(span, "tiles cannot be compared: " + describe(a) + " and " + describe(b),
             {help("compare their elements with wp.tile_map(f, a, b)")});
    }
    using Operator = syntax::CompareOperator;
    if (op == Operator::is || op == Operator::is_not) {
        if (a.is_binding(Binding::Kind::none)) std::swap(a, b);
        if (!b.is_binding(Binding::Kind::none)) {
            fail(span, std::string("'") + sign_of(op) + "' only compares with None in kernels", {help("use == or !=")});
        }
        if (a.is_binding() || a.is_constant() || a.is_tuple()) {
            return Value::boolean(a.is_binding(Binding::Kind::none) == (op == Operator::is));
        }
        // Only arrays can be None; any other value never is.
        if (!a.type.is_array()) return Value::boolean(op == Operator::is_not);
        ir::Value* is_null = builder_.is_null(values_.materialize(a, span));
        return Value::runtime(op == Operator::is ? is_null : builder_.unary(ir::Op::invert, is_null));
    }
    if (op == Operator::in || op == Operator::not_in) {
        const std::optional<std::vector<Value>> candidates = parts_.elements(b);
        if (!candidates) {
            fail(span,
                 std::string("'") + sign_of(op) + "' needs a tuple or a vector on its right in kernels, not " +
                     describe(b),
                 {help(type_of(b).is_array() ? "loop over the array and compare its elements"
                                             : "write x in (a, b, c)")});
        }
        Value found = Value::boolean(false);
        for (const Value& element : *candidates) {
            const Value same = equal(a, element, span);
            if (same.is_constant_bool()) {
                if (same.numbers[0].i != 0) found = same;
            } else if (found.is_constant_bool()) {
                if (found.numbers[0].i == 0) found = same;
            } else {
                found = Value::runtime(builder_.binary(ir::Op::or_, found.ir, same.ir));
            }
            if (found.is_constant_bool() && found.numbers[0].i != 0) break;
        }
        return op == Operator::in ? found : values_.logical_not(found, span);
    }
    if (is_equality(op) && (!type_of(a).is_scalar() || !type_of(b).is_scalar())) {
        const Value same = equal(a, b, span);
        return op == Operator::eq ? same : values_.logical_not(same, span);
    }
    const auto refuse = [&](std::vector<Note> notes) {
        fail(span, std::string("'") + sign_of(op) + "' cannot compare " + describe(a) + " and " + describe(b),
             std::move(notes));
    };
    if (!type_of(a).is_scalar() || !type_of(b).is_scalar()) {
        refuse({help("only scalars have an order; compare components one by one")});
    }
    if (const auto value = compare_bools(op, a, b, span)) return *value;
    if (a.is_literal && b.is_literal) {
        const bool is_float = a.numbers[0].is_float || b.numbers[0].is_float;
        return Value::boolean(fold(op, is_float ? Scalar::f64 : Scalar::i64, a.numbers[0], b.numbers[0]));
    }
    if (a.is_literal) a = adapt(a, b.type, span).value_or(a);
    if (b.is_literal) b = adapt(b, a.type, span).value_or(b);
    if (!(a.type == b.type)) return compare_types(op, std::move(a), std::move(b), span);
    if (a.is_literal || b.is_literal) {
        refuse({help("values never convert by themselves; write wp." + a.type.python_name() + "(...) or wp." +
                     b.type.python_name() + "(...)")});
    }
    if (a.is_constant() && b.is_constant()) {
        return Value::boolean(fold(op, a.type.scalar(), a.numbers[0], b.numbers[0]));
    }
    return Value::runtime(builder_.compare(op_of(op), values_.materialize(a, span), values_.materialize(b, span)));
}

// Numbers of different types: the values are compared, as in Python. Integers exactly; beside a float they become
// float64, which is exact below 2^53.
Value FunctionAnalyzer::compare_types(syntax::CompareOperator op, Value a, Value b, Span span) {
    using Operator = syntax::CompareOperator;
    const auto is_unsigned_64 = [](Type type) { return type.scalar() == Scalar::u64; };
    const auto is_signed = [](Type type) { return type.is_int() && info(type.scalar()).is_signed(); };
    const auto as = [&](Scalar scalar, const Value& v) {
        return constructors_.convert_scalar(Type::scalar(scalar), v, span);
    };
    if (a.type.is_float() || b.type.is_float()) {
        const bool same_kind = a.type.is_float() && b.type.is_float();
        const bool narrow = same_kind && info(a.type.scalar()).bits <= 32 && info(b.type.scalar()).bits <= 32;
        const Scalar common = narrow ? Scalar::f32 : Scalar::f64;
        return compare_pair(op, as(common, a), as(common, b), span);
    }
    if (!is_unsigned_64(a.type) && !is_unsigned_64(b.type))
        return compare_pair(op, as(Scalar::i64, a), as(Scalar::i64, b), span);
    if (!is_signed(a.type) && !is_signed(b.type)) return compare_pair(op, as(Scalar::u64, a), as(Scalar::u64, b), span);
    // A negative number is below all of the other's.
    const bool a_is_signed = is_signed(a.type);
    const Value whole = settle(a_is_signed ? a : b, span);
    ir::Value* number = values_.materialize(whole, span);
    ir::Value* negative = builder_.compare(ir::Op::cmp_lt, number, builder_.zero(number->type));
    const Value rest = compare_pair(op, as(Scalar::u64, a), as(Scalar::u64, b), span);
    const bool a_is_below = a_is_signed;
    const bool if_negative = op == Operator::ne || ((op == Operator::lt || op == Operator::le) && a_is_below) ||
                             ((op == Operator::gt || op == Operator::ge) && !a_is_below);
    ir::Value* otherwise = values_.materialize(rest, span);
    if (if_negative) return Value::runtime(builder_.binary(ir::Op::or_, negative, otherwise));
    return Value::runtime(builder_.binary(ir::Op::and_, builder_.unary(ir::Op::invert, negative), otherwise));
}

// Bools compare as 0 and 1 with integer literals, flag == 0, and are ordered among each other, (a < b) < (c > d).
std::optional<Value> FunctionAnalyzer::compare_bools(syntax::CompareOperator op, const Value& a, const Value& b,
                                                     Span span) {
    const auto is_integer = [](const Value& v) { return v.is_constant() && v.is_literal && !v.numbers[0].is_float; };
    const bool a_is_bool = a.type.is_bool(), b_is_bool = b.type.is_bool();
    const bool is_mixed = (a_is_bool && is_integer(b)) || (b_is_bool && is_integer(a));
    if (!is_mixed && !(a_is_bool && b_is_bool && !is_equality(op))) return std::nullopt;
    if (is_mixed && is_equality(op)) {
        const Value& flag = a_is_bool ? a : b;
        const std::int64_t number = (a_is_bool ? b : a).numbers[0].i;
        if (number == 0 || number == 1)
            return (number == 1) == (op == syntax::CompareOperator::eq) ? flag : values_.logical_not(flag, span);
    }
    const auto counted = [&](const Value& v) {
        return v.type.is_bool() ? constructors_.convert_scalar(i32_type(), v, span) : v;
    };
    return compare_pair(op, counted(a), counted(b), span);
}

// Field by field, as @dataclass defines it. Empty for a struct that is no dataclass, or one with eq=False.
std::optional<Value> FunctionAnalyzer::equal_structs(const Value& a, const Value& b, Span span) {
    const Type type = type_of(a);
    const std::optional<Construction> rules = source_.environment->construction(type);
    if (!rules || !rules->has_equality) return std::nullopt;
    std::vector<Value> of_a, of_b;
    for (const std::string& name : rules->compared) {
        const std::optional<PartStep> step = part_attribute(type, name);
        if (!step) continue;
        of_a.push_back(parts_.read(a, *step));
        of_b.push_back(parts_.read(b, *step));
    }
    return equal(Value::tuple(std::move(of_a)), Value::tuple(std::move(of_b)), span);
}

Value FunctionAnalyzer::equal(Value a, Value b, Span span) {
    if (a.is_binding() && b.is_binding()) return Value::boolean(identical(a, b));
    if (a.is_tuple() && b.is_tuple()) {
        if (a.elements.size() != b.elements.size()) return Value::boolean(false);
        Value all = Value::boolean(true);
        for (std::size_t i = 0; i < a.elements.size(); ++i) {
            const Value one = equal(a.elements[i], b.elements[i], span);
            if (one.is_constant_bool() && one.numbers[0].i == 0) return one;
            if (one.is_constant_bool()) continue;
            all = all.is_constant() ? one : Value::runtime(builder_.binary(ir::Op::and_, all.ir, one.ir));
        }
        return all;
    }
    const Type type = type_of(a);
    if (type.is_scalar() && type_of(b).is_scalar()) return compare_pair(syntax::CompareOperator::eq, a, b, span);
    if (type.is_struct() && type == type_of(b))
        if (std::optional<Value> same = equal_structs(a, b, span)) return *same;
    if (!(type == type_of(b)) || !type.is_numeric_aggregate()) {
        std::vector<Note> notes;
        if (type.is_struct() && type == type_of(b))
            notes.push_back(help("compare the fields, or write @dataclass above the class"));
        if (b.is_binding(Binding::Kind::none)) notes.push_back(help("write 'is None'"));
        fail(span, "'==' cannot compare " + describe(a) + " and " + describe(b), std::move(notes));
    }
    // Equal when every component is.
    ir::Value* x = values_.materialize(a, span);
    ir::Value* y = values_.materialize(b, span);
    const builtins::E whole(builder_, x);
    if (builtins::needs_loop(whole)) {
        const auto step = [&](const std::vector<ir::Value*>& carried, const std::vector<ir::Value*>& indices) {
            ir::Value* const left = builder_.extract_at(x, indices);
            ir::Value* same = builder_.compare(ir::Op::cmp_eq, left, builder_.extract_at(y, indices));
            return std::vector<ir::Value*>{builder_.binary(ir::Op::and_, carried[0], same)};
        };
        return Value::runtime(builtins::over_components(whole, {builder_.boolean(true)}, step)[0]);
    }
    ir::Value* all = nullptr;
    for (int row = 0; row < type.rows(); ++row) {
        for (int col = 0; col < type.cols(); ++col) {
            const std::vector<std::int64_t> path =
                type.is_matrix() ? std::vector<std::int64_t>{row, col} : std::vector<std::int64_t>{row};
            ir::Value* same = builder_.compare(ir::Op::cmp_eq, builder_.extract(x, path), builder_.extract(y, path));
            all = all ? builder_.binary(ir::Op::and_, all, same) : same;
        }
    }
    return Value::runtime(all);
}

// The operands first .. last of an `and` or `or`. Long chains are halved, so that the depth of branches is logarithmic.
Value FunctionAnalyzer::bool_op(const syntax::BoolOp& op, std::size_t first, std::size_t last, Span span) {
    constexpr std::size_t kShortChain = 8;
    if (first == last) {
        const syntax::Expression& operand = *op.operands[first];
        const Value value = expression(operand);
        if (const std::optional<bool> known = constant_truth(value)) return Value::boolean(*known);
        return Value::runtime(values_.truth(value, operand.span));
    }
    const std::size_t count = last - first + 1, middle = count > kShortChain ? first + count / 2 : first + 1;
    const Value value = bool_op(op, first, middle - 1, span);
    const auto rest = [&] { return bool_op(op, middle, last, span); };
    // If the value is known at compile time, the rest is either the answer or never evaluated.
    if (const std::optional<bool> known = constant_truth(value)) {
        return *known == op.is_and ? rest() : Value::boolean(*known);
    }
    ir::Value* condition = value.ir;
    const auto run_rest = [&](Value& result) {
        result = rest();
        return kFalls;
    };
    const auto decided = [&](Value& result) {
        result = Value::boolean(!op.is_and);
        return kFalls;
    };
    Value result;
    if (op.is_and)
        branches_.write(condition, span, run_rest, decided, &result);
    else
        branches_.write(condition, span, decided, run_rest, &result);
    if (result.is_runtime()) {
        if (ir::Value* flat = flatten_branch(builder_, builder_.region())) return Value::runtime(flat);
    }
    return result;
}

Value FunctionAnalyzer::if_expression(const syntax::IfExpression& e, Span span) {
    const Value condition = expression(*e.condition);
    if (const std::optional<bool> known = constant_truth(condition)) {
        return expression(*known ? *e.then_value : *e.else_value);
    }
    ir::Value* truth_value = values_.truth(condition, e.condition->span);
    Value result;
    branches_.write(
        truth_value, span,
        [&](Value& r) {
            r = expression(*e.then_value);
            return kFalls;
        },
        [&](Value& r) {
            r = expression(*e.else_value);
            return kFalls;
        },
        &result);
    if (result.is_runtime()) {
        if (ir::Value* flat = flatten_branch(builder_, builder_.region())) return Value::runtime(flat);
    }
    return result;
}

}  // namespace weft::sema
