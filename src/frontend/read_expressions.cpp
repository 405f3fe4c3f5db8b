// Expressions: one for each node, numbered in reading order.
#include "frontend/python_text.h"
#include "frontend/tree_reader.h"

namespace weft::frontend {

ExpressionPtr TreeReader::expression(nb::handle node) {
    auto result = std::make_unique<Expression>();
    const ExpressionLocation at = location(node);
    result->span = span(at);
    result->id = static_cast<int>(locations.size());
    locations.push_back(at);
    result->node = content(node);
    if (std::holds_alternative<Name>(result->node)) names_.push_back(result.get());
    return result;
}

std::vector<ExpressionPtr> TreeReader::expressions(nb::handle list) {
    std::vector<ExpressionPtr> result;
    for (nb::handle item : nb::borrow<nb::list>(list)) result.push_back(expression(item));
    return result;
}

TreeReader::Content TreeReader::content(nb::handle node) {
    const FieldNames& f = fields();
    const Node kind = node_of(node);
    switch (kind) {
        case Node::Name:
            return Name{get_text(node, f.id)};
        case Node::Constant:
            return constant(get(node, f.value));
        case Node::Attribute: {
            auto object = expression(get(node, f.value));
            return Attribute{std::move(object), get_text(node, f.attr)};
        }
        case Node::Subscript: {
            auto object = expression(get(node, f.value));
            std::vector<ExpressionPtr> at = indices(get(node, f.slice));
            const auto* parameter = at.size() == 1 ? std::get_if<Name>(&at[0]->node) : nullptr;
            if (is_adjoint_ && parameter && is_adjoint_(*object)) return Name{"adjoint[" + parameter->id + "]"};
            return Subscript{std::move(object), std::move(at)};
        }
        case Node::Slice: {
            auto start = optional_expression(get(node, f.lower));
            auto stop = optional_expression(get(node, f.upper));
            return Slice{std::move(start), std::move(stop), optional_expression(get(node, f.step))};
        }
        case Node::Call:
            return call(node);
        case Node::UnaryOp:
            return Unary{unary_operator(get(node, f.op)), expression(get(node, f.operand))};
        case Node::BinOp: {
            auto left = expression(get(node, f.left));
            return syntax::Binary{binary_operator(get(node, f.op)), std::move(left), expression(get(node, f.right))};
        }
        case Node::BoolOp:
            return BoolOp{node_of(get(node, f.op)) == Node::And, expressions(get(node, f.values))};
        case Node::Compare:
            return compare(node);
        case Node::IfExp: {
            auto condition = expression(get(node, f.test));
            auto then_value = expression(get(node, f.body));
            return IfExpression{std::move(condition), std::move(then_value), expression(get(node, f.orelse))};
        }
        case Node::Tuple:
        case Node::List:
            return Tuple{expressions(get(node, f.elts)), kind == Node::List};
        case Node::Starred:
            return Starred{expression(get(node, f.value))};
        case Node::JoinedStr:
            return formatted(node);
        case Node::NamedExpr: {
            auto target = expression(get(node, f.target));
            return Named{std::move(target), expression(get(node, f.value))};
        }
        case Node::ListComp:
        case Node::GeneratorExp:
            return comprehension(node);
        case Node::Lambda:
            return lambda(node, "lambda");
        default:
            break;
    }
    if (const char* what = unsupported_expression(kind)) return Unsupported{what};
    return Unsupported{"the expression '" + std::string(nb::str(node.type().attr("__name__")).c_str()) + "'"};
}

TreeReader::Content TreeReader::constant(nb::handle value) {
    PyObject* object = value.ptr();
    if (value.is_none()) return NoneLiteral{};
    if (PyBool_Check(object)) return BoolLiteral{object == Py_True};
    if (PyLong_Check(object)) return integer(value);
    if (PyFloat_Check(object)) return FloatLiteral{PyFloat_AS_DOUBLE(object)};
    if (PyUnicode_Check(object)) {
        if (std::string why = why_unusable_string(value); !why.empty()) return Unsupported{std::move(why)};
        return StringLiteral{utf8_text(value)};
    }
    if (object == Py_Ellipsis) return Unsupported{"..."};
    if (PyComplex_Check(object)) return Unsupported{"a complex number"};
    return Unsupported{"a literal of the type " + std::string(nb::str(value.type().attr("__name__")).c_str())};
}

TreeReader::Content TreeReader::integer(nb::handle value) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    // Python refuses to format integers of thousands of digits in decimal, but not in hexadecimal.
    const auto text = [&] {
        const bool is_long = PyFloat_AsDouble(value.ptr()) == -1.0 && PyErr_Occurred();
        if (is_long) PyErr_Clear();
        return utf8_text(nb::steal(PyNumber_ToBase(value.ptr(), is_long ? 16 : 10)));
    };
    if (!overflow) return IntegerLiteral{number, false, std::to_string(number)};
    const unsigned long long large = PyLong_AsUnsignedLongLong(value.ptr());
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return IntegerLiteral{0, true, text()};
    }
    return IntegerLiteral{static_cast<std::int64_t>(large), false, std::to_string(large)};
}

std::vector<ExpressionPtr> TreeReader::indices(nb::handle slice) {
    if (node_of(slice) == Node::Tuple) return expressions(get(slice, fields().elts));
    std::vector<ExpressionPtr> one;
    one.push_back(expression(slice));
    return one;
}

TreeReader::Content TreeReader::call(nb::handle node) {
    const FieldNames& f = fields();
    if (nb::object function = get(node, f.func); node_of(function) == Node::Attribute) {
        const nb::object object = get(function, f.value);
        if (node_of(object) == Node::Constant && get_text(function, f.attr) == "format" &&
            PyUnicode_Check(get(object, f.value).ptr()))
            return formatted_by_call(node, utf8_text(get(object, f.value)), span(object));
    }
    Call result;
    result.function = expression(get(node, f.func));
    result.arguments = expressions(get(node, f.args));
    for (nb::handle keyword : nb::borrow<nb::list>(get(node, f.keywords))) {
        nb::object name = get(keyword, f.arg);
        if (name.is_none()) return Unsupported{"** in a call"};
        result.keywords.push_back({nb::borrow<nb::str>(name).c_str(), expression(get(keyword, f.value))});
    }
    return result;
}

TreeReader::Content TreeReader::compare(nb::handle node) {
    const FieldNames& f = fields();
    Compare result;
    result.left = expression(get(node, f.left));
    for (nb::handle op : nb::borrow<nb::list>(get(node, f.ops))) result.ops.push_back(compare_operator(op));
    result.operands = expressions(get(node, f.comparators));
    return result;
}

ExpressionPtr TreeReader::made(Content content, Span span) {
    auto result = std::make_unique<Expression>();
    result->node = std::move(content);
    result->span = span;
    return result;
}

}  // namespace weft::frontend
