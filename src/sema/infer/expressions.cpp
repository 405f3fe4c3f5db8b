// Expressions: one case for each construct; the files beside this one do the work.
#include <limits>

#include "sema/analyzer.h"
#include "sema/overloaded.h"

namespace weft::sema {

Value FunctionAnalyzer::expression(const syntax::Expression& e) { return detached(with_view(e)); }

Value FunctionAnalyzer::with_view(const syntax::Expression& e) {
    const Span saved = builder_.span;
    if (e.span) builder_.span = e.span;
    Value value = expression_node(e);
    builder_.span = saved;
    return value;
}

Value FunctionAnalyzer::expression_node(const syntax::Expression& e) {
    const Span span = e.span;
    return std::visit(
        Overloaded{
            [&](const syntax::Name& n) { return name(n, span); },
            [&](const syntax::IntegerLiteral& n) { return number(n, span); },
            [&](const syntax::FloatLiteral& n) { return Value::literal(Number::real(n.value)); },
            [&](const syntax::BoolLiteral& n) { return Value::boolean(n.value); },
            [&](const syntax::StringLiteral& n) {
                Binding text;
                text.kind = Binding::Kind::string;
                text.text = n.value;
                return Value::of_binding(std::move(text));
            },
            [&](const syntax::NoneLiteral&) {
                Binding none;
                none.kind = Binding::Kind::none;
                return Value::of_binding(std::move(none));
            },
            [&](const syntax::Attribute& n) {
                if ((n.name == "value" || n.name == "name") && names_.is_global_number(*n.object)) return evaluated(e);
                return attribute(n, span);
            },
            [&](const syntax::Subscript& n) {
                // FUNCTIONS["cube"]: Python itself reads the items of its objects, when the kernel is built.
                const std::optional<Binding> object = names_.static_binding(*n.object);
                if (object && object->kind == Binding::Kind::object) return evaluated(e);
                return subscript(n, span);
            },
            [&](const syntax::Slice&) -> Value {
                fail(span, "a slice can only stand in the brackets of an array, a tuple, a vector or a matrix", {},
                     ErrorCategory::syntax);
            },
            [&](const syntax::Call& n) { return call(n, span); },
            [&](const syntax::Unary& n) {
                // The lowest int64 is written as the negative of a number that only fits uint64.
                const auto* literal = std::get_if<syntax::IntegerLiteral>(&n.operand->node);
                if (n.op == syntax::UnaryOperator::negate && literal && !literal->overflow &&
                    literal->value == std::numeric_limits<std::int64_t>::min()) {
                    return Value::literal(Number::integer(literal->value));
                }
                return unary(n.op, expression(*n.operand), span);
            },
            [&](const syntax::Binary& n) {
                Value left = expression(*n.left);
                Value right = expression(*n.right);
                return binary(n.op, std::move(left), std::move(right), span, n.left->span, n.right->span);
            },
            [&](const syntax::BoolOp& n) { return bool_op(n, 0, n.operands.size() - 1, span); },
            [&](const syntax::Compare& n) { return compare(n, span); },
            [&](const syntax::IfExpression& n) { return if_expression(n, span); },
            [&](const syntax::Tuple& n) {
                Value values = tuple(n.elements);
                values.is_list = n.is_list;
                return values;
            },
            [&](const syntax::Starred&) -> Value {
                fail(span, "'*' can only unpack a tuple inside a call or a tuple", {}, ErrorCategory::syntax);
            },
            [&](const syntax::FormattedString&) -> Value {
                fail(span, "f-strings and format() are only supported in print(), assert and raise",
                     {help("write print(a, b) or wp.printf(\"%d %f\\n\", a, b)")}, ErrorCategory::syntax);
            },
            [&](const syntax::Named& n) {
                assign_to(*n.target, expression(*n.value), n.value->span);
                return expression(*n.target);
            },
            [&](const syntax::Comprehension& n) { return comprehension(n); },
            [&](const syntax::LengthTest& n) {
                const Value object = expression(*n.object);
                const bool is_sequence = object.is_tuple() || type_of(object).is_numeric_aggregate();
                const auto length = static_cast<std::int64_t>(object.is_tuple() ? object.elements.size()
                                                              : is_sequence     ? type_of(object).rows()
                                                                                : 0);
                return Value::boolean(is_sequence && (n.or_more ? length >= n.length : length == n.length));
            },
            [&](const syntax::ClassTest& n) { return Value::boolean(is_instance(n)); },
            [&](const syntax::PartByNumber& n) { return part_by_number(n, span); },
            [&](const syntax::Lambda& n) { return lambda(n); },
            [&](const syntax::Unsupported& n) -> Value {
                fail(span, n.what + " is not supported in kernels",
                     {help("kernels know arithmetic, comparisons, calls, subscripts, attributes, lambdas and lists "
                           "of known length; wp.static(...) runs any Python expression when the kernel is built")},
                     ErrorCategory::syntax);
            },
        },
        e.node);
}

Value FunctionAnalyzer::number(const syntax::IntegerLiteral& literal, Span span) {
    if (literal.overflow) {
        fail(span, "the integer " + literal.text + " does not fit any integer type",
             {note("int64 reaches 9223372036854775807 and uint64 18446744073709551615"),
              help(literal.text.starts_with("0x") ? "no type of a kernel holds it"
                                                  : "write it as a float: " + literal.text + ".0")},
             ErrorCategory::value);
    }
    // Source has no negative literals: a negative value is one that only fits uint64.
    if (literal.value < 0) return Value::integer(literal.value, u64_type());
    return Value::literal(Number::integer(literal.value));
}

std::vector<Value> FunctionAnalyzer::starred_values(const syntax::Starred& starred) {
    const auto* subscript = std::get_if<syntax::Subscript>(&starred.value->node);
    const bool is_slice = subscript && has_slice(subscript->indices);
    const Value object = is_slice ? expression(*subscript->object) : Value{};
    if (is_slice && !object.is_binding() && !object.is_tuple() && type_of(object).is_array())
        return sliced_elements(object, subscript->indices);
    const Value inner =
        is_slice ? subscript_of(object, subscript->indices, starred.value->span) : expression(*starred.value);
    if (auto found = parts_.elements(inner)) return *found;
    fail(starred.value->span, "'*' needs a tuple or a vector, not " + describe(inner));
}

Value FunctionAnalyzer::tuple(const std::vector<syntax::ExpressionPtr>& elements) {
    std::vector<Value> values;
    for (const auto& element : elements) {
        if (const auto* starred = std::get_if<syntax::Starred>(&element->node)) {
            const std::vector<Value> inner = starred_values(*starred);
            values.insert(values.end(), inner.begin(), inner.end());
        } else {
            values.push_back(expression(*element));
        }
    }
    return Value::tuple(std::move(values));
}

}  // namespace weft::sema
