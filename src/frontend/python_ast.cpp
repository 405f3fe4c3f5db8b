#include "frontend/python_ast.h"

#include <unordered_map>

#include "support/error.h"

namespace weft::frontend {

using namespace syntax;

Node node_of(nb::handle object) {
    static const auto* classes = [] {
        auto* map = new std::unordered_map<PyTypeObject*, Node>;
        nb::object ast = nb::module_::import_("_ast");
        const auto add = [&](const char* name, Node node) {
            nb::object found = nb::getattr(ast, name, nb::none());
            if (!found.is_none()) map->emplace(reinterpret_cast<PyTypeObject*>(found.release().ptr()), node);
        };
#define X(name) add(#name, Node::name);
        WEFT_AST_CLASSES(X)
#undef X
        return map;
    }();
    const auto found = classes->find(Py_TYPE(object.ptr()));
    return found == classes->end() ? Node::unknown : found->second;
}

const FieldNames& fields() {
    static const auto* names = new FieldNames;
    return *names;
}

nb::object get(nb::handle node, const FieldName& field) {
    PyObject* value = PyObject_GetAttr(node.ptr(), field.text);
    if (!value) throw nb::python_error();
    return nb::steal(value);
}
int get_int(nb::handle node, const FieldName& field) { return static_cast<int>(PyLong_AsLong(get(node, field).ptr())); }
std::string get_text(nb::handle node, const FieldName& field) { return nb::borrow<nb::str>(get(node, field)).c_str(); }

BinaryOperator binary_operator(nb::handle op) {
    switch (node_of(op)) {
        case Node::Add:
            return BinaryOperator::add;
        case Node::Sub:
            return BinaryOperator::sub;
        case Node::Mult:
            return BinaryOperator::mul;
        case Node::MatMult:
            return BinaryOperator::matmul;
        case Node::Div:
            return BinaryOperator::div;
        case Node::FloorDiv:
            return BinaryOperator::floordiv;
        case Node::Mod:
            return BinaryOperator::mod;
        case Node::Pow:
            return BinaryOperator::pow;
        case Node::LShift:
            return BinaryOperator::lshift;
        case Node::RShift:
            return BinaryOperator::rshift;
        case Node::BitOr:
            return BinaryOperator::bit_or;
        case Node::BitXor:
            return BinaryOperator::bit_xor;
        case Node::BitAnd:
            return BinaryOperator::bit_and;
        default:
            throw InternalError("unknown binary operator in Python's ast");
    }
}

UnaryOperator unary_operator(nb::handle op) {
    switch (node_of(op)) {
        case Node::USub:
            return UnaryOperator::negate;
        case Node::UAdd:
            return UnaryOperator::plus;
        case Node::Invert:
            return UnaryOperator::invert;
        case Node::Not:
            return UnaryOperator::logical_not;
        default:
            throw InternalError("unknown unary operator in Python's ast");
    }
}

CompareOperator compare_operator(nb::handle op) {
    switch (node_of(op)) {
        case Node::Lt:
            return CompareOperator::lt;
        case Node::LtE:
            return CompareOperator::le;
        case Node::Gt:
            return CompareOperator::gt;
        case Node::GtE:
            return CompareOperator::ge;
        case Node::Eq:
            return CompareOperator::eq;
        case Node::NotEq:
            return CompareOperator::ne;
        case Node::Is:
            return CompareOperator::is;
        case Node::IsNot:
            return CompareOperator::is_not;
        case Node::In:
            return CompareOperator::in;
        case Node::NotIn:
            return CompareOperator::not_in;
        default:
            throw InternalError("unknown comparison in Python's ast");
    }
}

const char* unsupported_expression(Node node) {
    switch (node) {
        case Node::SetComp:
            return "a set comprehension";
        case Node::DictComp:
            return "a dict comprehension";
        case Node::Dict:
            return "a dict";
        case Node::Set:
            return "a set";
        case Node::Await:
            return "await";
        case Node::Yield:
        case Node::YieldFrom:
            return "yield";
        case Node::TemplateStr:
            return "a template string";
        default:
            return nullptr;
    }
}

const char* unsupported_statement(Node node) {
    switch (node) {
        case Node::ClassDef:
            return "class";
        case Node::Delete:
            return "del";
        case Node::With:
            return "with";
        case Node::Try:
        case Node::TryStar:
            return "try";
        case Node::Import:
        case Node::ImportFrom:
            return "import";
        case Node::Global:
            return "global";
        case Node::TypeAlias:
            return "a type alias";
        case Node::AsyncFunctionDef:
        case Node::AsyncFor:
        case Node::AsyncWith:
            return "async";
        default:
            return nullptr;
    }
}

void ask_for_signals() {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace weft::frontend
