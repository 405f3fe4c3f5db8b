// One read_* function per construct; the switch over node classes goes through a map from CPython's class objects, and
// fields are read by interned names, because a long kernel has ten thousand nodes.
#include "frontend/tree_reader.h"

#include <cmath>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "frontend/objects.h"
#include "sema/scope/walk.h"
#include "support/error.h"

namespace weft::frontend {
namespace {

using namespace syntax;

// Every ast class that is told apart. Classes of newer or older Pythons that are absent are skipped.
#define WEFT_AST_CLASSES(X)                                                                                          \
    /* expressions */                                                                                                \
    X(Name)                                                                                                          \
    X(Constant)                                                                                                      \
    X(Attribute)                                                                                                     \
    X(Subscript)                                                                                                     \
    X(Slice)                                                                                                         \
    X(Call)                                                                                                          \
    X(UnaryOp)                                                                                                       \
    X(BinOp)                                                                                                         \
    X(BoolOp)                                                                                                        \
    X(Compare)                                                                                                       \
    X(IfExp)                                                                                                         \
    X(Tuple)                                                                                                         \
    X(List)                                                                                                          \
    X(Starred)                                                                                                       \
    X(JoinedStr)                                                                                                     \
    X(FormattedValue)                                                                                                \
    X(TemplateStr)                                                                                                   \
    X(Lambda)                                                                                                        \
    X(ListComp)                                                                                                      \
    X(SetComp)                                                                                                       \
    X(DictComp)                                                                                                      \
    X(GeneratorExp)                                                                                                  \
    X(Dict)                                                                                                          \
    X(Set)                                                                                                           \
    X(NamedExpr)                                                                                                     \
    X(Await)                                                                                                         \
    X(Yield)                                                                                                         \
    X(YieldFrom) /* statements */                                                                                    \
    X(Assign)                                                                                                        \
    X(AnnAssign)                                                                                                     \
    X(AugAssign)                                                                                                     \
    X(Expr)                                                                                                          \
    X(If)                                                                                                            \
    X(For)                                                                                                           \
    X(While)                                                                                                         \
    X(Return)                                                                                                        \
    X(Break)                                                                                                         \
    X(Continue)                                                                                                      \
    X(Pass)                                                                                                          \
    X(Assert)                                                                                                        \
    X(FunctionDef)                                                                                                   \
    X(AsyncFunctionDef)                                                                                              \
    X(ClassDef)                                                                                                      \
    X(Delete) X(AsyncFor) X(With) X(AsyncWith) X(Match) X(Raise) X(Try) X(TryStar) X(Import) X(ImportFrom) X(Global) \
        X(Nonlocal) X(TypeAlias) /* patterns */                                                                      \
        X(MatchValue) X(MatchSingleton) X(MatchOr) X(MatchAs) X(MatchSequence) X(MatchStar) X(MatchMapping)          \
            X(MatchClass) /* operators */                                                                            \
        X(Add) X(Sub) X(Mult) X(MatMult) X(Div) X(FloorDiv) X(Mod) X(Pow) X(LShift) X(RShift) X(BitOr) X(BitXor)     \
            X(BitAnd) X(USub) X(UAdd) X(Invert) X(Not) X(And) X(Or) X(Lt) X(LtE) X(Gt) X(GtE) X(Eq) X(NotEq) X(Is)   \
                X(IsNot) X(In) X(NotIn)

enum class Node {
    unknown,
#define X(name) name,
    WEFT_AST_CLASSES(X)
#undef X
};

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

// A field name, interned once.
struct FieldName {
    PyObject* text;
    explicit FieldName(const char* name) : text(PyUnicode_InternFromString(name)) {}
};
struct FieldNames {
#define WEFT_FIELD(name) FieldName name{#name};
    WEFT_FIELD(lineno)
    WEFT_FIELD(col_offset)
    WEFT_FIELD(end_lineno)
    WEFT_FIELD(end_col_offset)
    WEFT_FIELD(id)
    WEFT_FIELD(value)
    WEFT_FIELD(attr)
    WEFT_FIELD(slice)
    WEFT_FIELD(lower)
    WEFT_FIELD(upper)
    WEFT_FIELD(step)
    WEFT_FIELD(func)
    WEFT_FIELD(args)
    WEFT_FIELD(keywords)
    WEFT_FIELD(arg)
    WEFT_FIELD(op)
    WEFT_FIELD(operand)
    WEFT_FIELD(left)
    WEFT_FIELD(right)
    WEFT_FIELD(values)
    WEFT_FIELD(ops)
    WEFT_FIELD(comparators)
    WEFT_FIELD(test)
    WEFT_FIELD(body)
    WEFT_FIELD(orelse)
    WEFT_FIELD(elts)
    WEFT_FIELD(format_spec)
    WEFT_FIELD(conversion)
    WEFT_FIELD(targets)
    WEFT_FIELD(target)
    WEFT_FIELD(annotation)
    WEFT_FIELD(iter)
    WEFT_FIELD(msg)
    WEFT_FIELD(name)
    WEFT_FIELD(posonlyargs)
    WEFT_FIELD(kwonlyargs)
    WEFT_FIELD(vararg)
    WEFT_FIELD(kwarg)
    WEFT_FIELD(defaults)
    WEFT_FIELD(returns)
    WEFT_FIELD(names)
    WEFT_FIELD(elt)
    WEFT_FIELD(generators) WEFT_FIELD(ifs) WEFT_FIELD(is_async) WEFT_FIELD(exc) WEFT_FIELD(cause) WEFT_FIELD(subject)
        WEFT_FIELD(cases) WEFT_FIELD(pattern) WEFT_FIELD(patterns) WEFT_FIELD(guard) WEFT_FIELD(decorator_list)
            WEFT_FIELD(cls) WEFT_FIELD(kwd_attrs) WEFT_FIELD(kwd_patterns)
#undef WEFT_FIELD
};
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

class TreeReader {
public:
    TreeReader(const ParsedFunction& parsed, IsAdjoint is_adjoint)
        : source_(*parsed.source), line_offset_(parsed.line_offset), is_adjoint_(std::move(is_adjoint)) {}

    std::vector<ExpressionPlace> places;

    // ---- places ----

    ExpressionPlace place(nb::handle node) const {
        const FieldNames& f = fields();
        return {get_int(node, f.lineno) + line_offset_, get_int(node, f.col_offset),
                get_int(node, f.end_lineno) + line_offset_, get_int(node, f.end_col_offset)};
    }
    // The part on the first line; ast counts bytes of UTF-8, a Span counts characters.
    Span span(const ExpressionPlace& at) const {
        const std::string& line = source_.line(at.line);
        const int end = at.end_line == at.line ? at.end : static_cast<int>(line.size());
        return {&source_, at.line, characters(line, at.begin), characters(line, end)};
    }
    Span span(nb::handle node) const { return span(place(node)); }

    // ---- expressions ----

    ExpressionPtr expression(nb::handle node) {
        auto result = std::make_unique<Expression>();
        const ExpressionPlace at = place(node);
        result->span = span(at);
        result->id = static_cast<int>(places.size());
        places.push_back(at);
        result->node = content(node);
        if (std::holds_alternative<Name>(result->node)) names_.push_back(result.get());
        return result;
    }
    ExpressionPtr optional_expression(nb::handle node) { return node.is_none() ? nullptr : expression(node); }
    std::vector<ExpressionPtr> expressions(nb::handle list) {
        std::vector<ExpressionPtr> result;
        for (nb::handle item : nb::borrow<nb::list>(list)) result.push_back(expression(item));
        return result;
    }

    // ---- statements ----

    Block block(nb::handle list) {
        Block result;
        for (nb::handle node : nb::borrow<nb::list>(list)) {
            const Node kind = node_of(node);
            if (kind == Node::For || kind == Node::While) {
                loop(node, result);
                continue;
            }
            if (kind == Node::Match) {
                match(node, result);
                continue;
            }
            if (kind == Node::Break && !broke_.empty() && !broke_.back().empty()) {
                result.push_back(set_flag(broke_.back(), true, span(node)));
            }
            result.push_back(std::make_unique<Statement>(Statement{statement(node), span(node)}));
        }
        return result;
    }

    // ---- signature ----

    void signature(nb::handle arguments, Function& function) {
        const FieldNames& f = fields();
        for (const FieldName* list : {&f.posonlyargs, &f.args}) {
            for (nb::handle argument : nb::borrow<nb::list>(get(arguments, *list))) {
                function.parameters.push_back(
                    {get_text(argument, f.arg), span(argument), !get(argument, f.annotation).is_none()});
            }
        }
        const std::size_t defaults = nb::len(get(arguments, f.defaults));
        for (std::size_t i = 0; i < defaults; ++i) {
            function.parameters[function.parameters.size() - 1 - i].has_default = true;
        }
        if (!get(arguments, f.vararg).is_none()) function.unsupported = "*" + get_text(get(arguments, f.vararg), f.arg);
        if (!get(arguments, f.kwarg).is_none()) function.unsupported = "**" + get_text(get(arguments, f.kwarg), f.arg);
        if (nb::len(get(arguments, f.kwonlyargs)) > 0) function.unsupported = "keyword-only parameters";
    }

private:
    using Content = decltype(Expression::node);
    using StatementContent = decltype(Statement::node);

    static int characters(const std::string& line, int bytes) {
        int count = 0;
        for (int i = 0; i < bytes && i < static_cast<int>(line.size()); ++i) {
            count += (static_cast<unsigned char>(line[static_cast<std::size_t>(i)]) & 0xC0) != 0x80;
        }
        return count;
    }

    Content content(nb::handle node) {
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
                return Binary{binary_operator(get(node, f.op)), std::move(left), expression(get(node, f.right))};
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

    // ---- lambdas and comprehensions: their variables get a number, see syntax/tree.h ----

    // Gives the number to these variables, wherever they stand since the names were that many.
    void number(const std::set<std::string>& variables, int scope, std::size_t since) {
        for (std::size_t i = since; i < names_.size(); ++i) {
            std::string& id = std::get<Name>(names_[i]->node).id;
            if (variables.contains(id)) id += "'" + std::to_string(scope);
        }
    }

    Content comprehension(nb::handle node) {
        const FieldNames& f = fields();
        Comprehension result;
        result.scope = ++scopes_;
        const auto parts = nb::borrow<nb::list>(get(node, f.generators));
        // The first iterable belongs to the function around.
        ExpressionPtr first = expression(get(parts[0], f.iter));
        const std::size_t since = names_.size();
        std::set<std::string> variables;
        for (nb::handle part : parts) {
            if (get_int(part, f.is_async) != 0) return Unsupported{"async"};
            Generator generator;
            generator.iterable = first ? std::move(first) : expression(get(part, f.iter));
            generator.target = expression(get(part, f.target));
            generator.conditions = expressions(get(part, f.ifs));
            sema::target_names(*generator.target, variables);
            result.generators.push_back(std::move(generator));
        }
        result.element = expression(get(node, f.elt));
        number(variables, result.scope, since);
        return result;
    }

    // A lambda, or a `def` within a function.
    Content lambda(nb::handle node, const std::string& name) {
        const FieldNames& f = fields();
        auto function = std::make_shared<Function>();
        function->name = name;
        function->span = span(node);
        function->scope = ++scopes_;
        signature(get(node, f.args), *function);
        Lambda result;
        // What belongs to the function around.
        for (const FieldName* list : {&f.posonlyargs, &f.args})
            for (nb::handle argument : nb::borrow<nb::list>(get(get(node, f.args), *list)))
                result.annotations.push_back(optional_expression(get(argument, f.annotation)));
        result.defaults = expressions(get(get(node, f.args), f.defaults));
        const bool is_lambda = node_of(node) == Node::Lambda;
        if (!is_lambda) result.result = optional_expression(get(node, f.returns));
        const std::size_t since = names_.size();
        nb::object body = get(node, f.body);
        std::set<std::string> outer = std::exchange(nonlocal_, {});
        broke_.emplace_back();  // its breaks are those of its own loops
        if (is_lambda) {
            Return value{expression(body)};
            const Span at = value.value->span;
            function->body.push_back(std::make_unique<Statement>(Statement{std::move(value), at}));
        } else {
            function->body = block(body);
        }
        broke_.pop_back();
        std::set<std::string> variables = sema::rebound_names(function->body);
        for (const std::string& other : std::exchange(nonlocal_, std::move(outer))) variables.erase(other);
        for (Parameter& parameter : function->parameters) {
            variables.insert(parameter.name);
            parameter.name += "'" + std::to_string(function->scope);
        }
        number(variables, function->scope, since);
        result.function = std::move(function);
        return result;
    }

    Content constant(nb::handle value) {
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

    Content integer(nb::handle value) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
        // Python refuses to write integers of thousands of digits in decimal; in hexadecimal it always can.
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

    std::vector<ExpressionPtr> indices(nb::handle slice) {
        if (node_of(slice) == Node::Tuple) return expressions(get(slice, fields().elts));
        std::vector<ExpressionPtr> one;
        one.push_back(expression(slice));
        return one;
    }

    Content call(nb::handle node) {
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

    Content compare(nb::handle node) {
        const FieldNames& f = fields();
        Compare result;
        result.left = expression(get(node, f.left));
        for (nb::handle op : nb::borrow<nb::list>(get(node, f.ops))) result.ops.push_back(compare_operator(op));
        result.operands = expressions(get(node, f.comparators));
        return result;
    }

    Content formatted(nb::handle node) {
        const FieldNames& f = fields();
        FormattedString result;
        for (nb::handle part : nb::borrow<nb::list>(get(node, f.values))) {
            if (node_of(part) != Node::FormattedValue) {
                result.parts.push_back(expression(part));
                continue;
            }
            if (get_int(part, f.conversion) != -1) return Unsupported{"a conversion (!r, !s, !a) in an f-string"};
            std::string format;
            if (nb::object spec = get(part, f.format_spec); !spec.is_none()) {
                for (nb::handle piece : nb::borrow<nb::list>(get(spec, f.values))) {
                    if (node_of(piece) != Node::Constant) return Unsupported{"a computed format in an f-string"};
                    format += utf8_text(get(piece, f.value));
                }
            }
            result.parts.push_back(expression(get(part, f.value)));
            result.formats.resize(result.parts.size());
            result.formats.back() = std::move(format);
        }
        return result;
    }

    // "{} of {n:3d}".format(x, n=count)
    Content formatted_by_call(nb::handle node, const std::string& text, Span place) {
        const FieldNames& f = fields();
        const auto arguments = nb::borrow<nb::list>(get(node, f.args));
        const auto keywords = nb::borrow<nb::list>(get(node, f.keywords));
        const auto find = [&](const std::string& name) -> nb::object {
            if (name.find_first_not_of("0123456789") == std::string::npos) {
                const std::size_t number = name.size() > 6 ? nb::len(arguments) : std::stoul(name);
                return number < nb::len(arguments) ? nb::object(arguments[number]) : nb::object();
            }
            for (nb::handle keyword : keywords) {
                const nb::object given = get(keyword, f.arg);
                if (!given.is_none() && name == nb::borrow<nb::str>(given).c_str()) return get(keyword, f.value);
            }
            return {};
        };
        for (nb::handle argument : arguments)
            if (node_of(argument) == Node::Starred) return Unsupported{"* in a call of format()"};
        FormattedString result;
        std::string literal;
        const auto add_literal = [&] {
            if (!literal.empty()) result.parts.push_back(made(StringLiteral{literal}, place));
            literal.clear();
        };
        std::size_t next = 0;
        bool has_numbers = false;
        for (std::size_t i = 0; i < text.size() && result.problem.empty(); ++i) {
            const char c = text[i];
            const bool is_twice = i + 1 < text.size() && text[i + 1] == c;
            if ((c != '{' && c != '}') || is_twice) {
                literal += c;
                i += c == '{' || c == '}';
                continue;
            }
            const std::size_t end = text.find('}', i);
            const std::string field = text.substr(i + 1, end - i - 1);
            if (c == '}' || end == std::string::npos || field.find('{') != std::string::npos) {
                result.problem = "the format has a brace without a partner; '{{' and '}}' show braces";
                break;
            }
            i = end;
            const std::size_t colon = field.find(':');
            std::string name = field.substr(0, colon);
            if (name.find_first_of("!.[") != std::string::npos) {
                result.problem = "'{" + field +
                                 "}' is no field that kernels know: write {}, {0} or {name}, and a format "
                                 "of a number behind a colon";
                break;
            }
            const bool is_counted = name.empty();
            if (is_counted) name = std::to_string(next++);
            has_numbers |= !is_counted && name.find_first_not_of("0123456789") == std::string::npos;
            const nb::object argument = find(name);
            if (next > 0 && has_numbers) {
                result.problem = "the format counts some fields by itself, {}, and has the numbers of others";
            } else if (!argument.is_valid()) {
                result.problem = "format() is given no argument " +
                                 (is_counted ? std::to_string(next) : "'" + name + "'") + " that '{" + field +
                                 "}' asks for";
            } else {
                add_literal();
                result.parts.push_back(expression(argument));
                result.formats.resize(result.parts.size());
                if (colon != std::string::npos) result.formats.back() = field.substr(colon + 1);
            }
        }
        add_literal();
        return result;
    }

    StatementContent statement(nb::handle node) {
        const FieldNames& f = fields();
        const Node kind = node_of(node);
        switch (kind) {
            case Node::Assign: {
                auto targets = expressions(get(node, f.targets));
                return Assign{std::move(targets), expression(get(node, f.value))};
            }
            case Node::AnnAssign: {
                auto target = expression(get(node, f.target));
                auto annotation = expression(get(node, f.annotation));
                return AnnotatedAssign{std::move(target), std::move(annotation),
                                       optional_expression(get(node, f.value))};
            }
            case Node::AugAssign: {
                auto target = expression(get(node, f.target));
                return AugmentedAssign{std::move(target), binary_operator(get(node, f.op)),
                                       expression(get(node, f.value))};
            }
            case Node::Expr: {
                nb::object value = get(node, f.value);
                if (node_of(value) == Node::Constant && get(value, f.value).ptr() == Py_Ellipsis) return Pass{};
                return ExpressionStatement{expression(value)};
            }
            case Node::If: {
                auto condition = expression(get(node, f.test));
                auto then_block = block(get(node, f.body));
                return If{std::move(condition), std::move(then_block), block(get(node, f.orelse))};
            }
            case Node::For: {
                auto target = expression(get(node, f.target));
                auto iterable = expression(get(node, f.iter));
                return For{std::move(target), std::move(iterable), block(get(node, f.body))};
            }
            case Node::While: {
                auto condition = expression(get(node, f.test));
                return While{std::move(condition), block(get(node, f.body))};
            }
            case Node::Return:
                return Return{optional_expression(get(node, f.value))};
            case Node::Break:
                return Break{};
            case Node::Continue:
                return Continue{};
            case Node::Pass:
                return Pass{};
            case Node::Assert: {
                auto condition = expression(get(node, f.test));
                return Assert{std::move(condition), optional_expression(get(node, f.msg))};
            }
            case Node::Raise:
                if (!get(node, f.cause).is_none()) return UnsupportedStatement{"raise ... from"};
                return Raise{optional_expression(get(node, f.exc))};
            case Node::FunctionDef: {
                if (nb::len(get(node, f.decorator_list)) > 0)
                    return UnsupportedStatement{"a decorator of a function within a function"};
                Assign assign;
                const std::string name = get_text(node, f.name);
                assign.targets.push_back(made(Name{name}, span(node)));
                names_.push_back(assign.targets[0].get());
                assign.value = made(lambda(node, name), span(node));
                return assign;
            }
            case Node::Nonlocal:
                for (nb::handle name : nb::borrow<nb::list>(get(node, f.names)))
                    nonlocal_.insert(nb::borrow<nb::str>(name).c_str());
                return Pass{};
            default:
                break;
        }
        if (const char* what = unsupported_statement(kind)) return UnsupportedStatement{what};
        return UnsupportedStatement{"the statement '" + std::string(nb::str(node.type().attr("__name__")).c_str()) +
                                    "'"};
    }

    // ---- match ----
    //
    //     match f(x):                     match'1 = f(x)
    //         case 1 | 2: a               if match'1 == 1 or match'1 == 2: a
    //         case (0, y) if y > 3: b     elif len(match'1) == 2 and match'1[0] == 0 and ((y := match'1[1]), y >
    //         3)[-1]: b case _: c                   else: c

    void match(nb::handle node, Block& result) {
        const FieldNames& f = fields();
        const std::string subject = "match'" + std::to_string(++scopes_);
        Assign assign;
        assign.value = expression(get(node, f.subject));
        const Span at = assign.value->span;
        assign.targets.push_back(made(Name{subject}, at));
        result.push_back(std::make_unique<Statement>(Statement{std::move(assign), at}));
        Block* rest = &result;
        for (nb::handle branch : nb::borrow<nb::list>(get(node, f.cases))) {
            const nb::object what = get(branch, f.pattern);
            const Span place = span(what);
            std::vector<ExpressionPtr> tests, captures;
            pattern(what, [&] { return made(Name{subject}, place); }, tests, captures);
            Block body;
            if (nb::object guard = get(branch, f.guard); guard.is_none()) {
                for (ExpressionPtr& capture : captures)
                    body.push_back(
                        std::make_unique<Statement>(Statement{ExpressionStatement{std::move(capture)}, place}));
            } else {
                tests.push_back(last_of(std::move(captures), expression(guard)));
            }
            for (auto& statement : block(get(branch, f.body))) body.push_back(std::move(statement));
            if (tests.empty()) {  // takes all that is left
                for (auto& statement : body) rest->push_back(std::move(statement));
                return;
            }
            rest->push_back(
                std::make_unique<Statement>(Statement{If{all_of(std::move(tests)), std::move(body), {}}, place}));
            rest = &std::get<If>(rest->back()->node).else_block;
        }
    }

    // The value of the last expression, after the others.
    static ExpressionPtr last_of(std::vector<ExpressionPtr> before, ExpressionPtr last) {
        if (before.empty()) return last;
        const Span at = last->span;
        before.push_back(std::move(last));
        const auto number = static_cast<std::int64_t>(before.size()) - 1;
        Subscript chosen{made(Tuple{std::move(before)}, at), {}};
        chosen.indices.push_back(integer_at(number, at));
        return made(std::move(chosen), at);
    }

    static ExpressionPtr all_of(std::vector<ExpressionPtr> tests) {
        if (tests.size() == 1) return std::move(tests[0]);
        const Span at = tests[0]->span;
        return made(BoolOp{true, std::move(tests)}, at);
    }

    static ExpressionPtr integer_at(std::int64_t value, Span at) {
        ExpressionPtr magnitude = made(IntegerLiteral{std::abs(value), false, std::to_string(std::abs(value))}, at);
        return value < 0 ? made(Unary{UnaryOperator::negate, std::move(magnitude)}, at) : std::move(magnitude);
    }

    using MakeSubject = std::function<ExpressionPtr()>;

    // What has to hold for the pattern, and the assignments of the names that it captures.
    void pattern(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                 std::vector<ExpressionPtr>& captures) {
        const FieldNames& f = fields();
        const Span at = span(node);
        const auto compare = [&](CompareOperator op, ExpressionPtr value) {
            Compare comparison{subject(), {op}, {}, true};
            comparison.operands.push_back(std::move(value));
            tests.push_back(made(std::move(comparison), at));
        };
        switch (node_of(node)) {
            case Node::MatchValue:
                return compare(CompareOperator::eq, expression(get(node, f.value)));
            case Node::MatchSingleton: {
                const nb::object value = get(node, f.value);
                if (value.is_none()) return compare(CompareOperator::is, made(NoneLiteral{}, at));
                return compare(CompareOperator::eq, made(BoolLiteral{value.ptr() == Py_True}, at));
            }
            case Node::MatchOr:
                return alternatives(node, subject, tests);
            case Node::MatchAs:
                if (nb::object inner = get(node, f.pattern); !inner.is_none()) pattern(inner, subject, tests, captures);
                return capture(node, subject(), captures);
            case Node::MatchSequence:
                return sequence(node, subject, tests, captures);
            case Node::MatchClass:
                return of_class(node, subject, tests, captures);
            default:
                tests.push_back(made(Unsupported{"a pattern of a mapping"}, at));
        }
    }

    void capture(nb::handle node, ExpressionPtr value, std::vector<ExpressionPtr>& captures) {
        const nb::object name = get(node, fields().name);
        if (name.is_none()) return;
        const Span at = span(node);
        ExpressionPtr target = made(Name{nb::borrow<nb::str>(name).c_str()}, at);
        names_.push_back(target.get());
        captures.push_back(made(Named{std::move(target), std::move(value)}, at));
    }

    // 1 | 2 | (3, _): names are captured as part of the test, since the alternatives find them at different places.
    void alternatives(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests) {
        const Span at = span(node);
        std::vector<ExpressionPtr> choices;
        for (nb::handle choice : nb::borrow<nb::list>(get(node, fields().patterns))) {
            std::vector<ExpressionPtr> inner, names;
            pattern(choice, subject, inner, names);
            if (!names.empty()) inner.push_back(last_of(std::move(names), made(BoolLiteral{true}, at)));
            if (inner.empty()) inner.push_back(made(BoolLiteral{true}, at));  // takes everything
            choices.push_back(all_of(std::move(inner)));
        }
        tests.push_back(made(BoolOp{false, std::move(choices)}, at));
    }

    // Point(0, y, z=_): the class, its first fields, and others by name.
    void of_class(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                  std::vector<ExpressionPtr>& captures) {
        const FieldNames& f = fields();
        const Span at = span(node);
        tests.push_back(made(ClassTest{subject(), expression(get(node, f.cls))}, at));
        std::int64_t number = 0;
        for (nb::handle part : nb::borrow<nb::list>(get(node, f.patterns))) {
            // What captures and tests nothing asks for its field, too.
            pattern(part, [&] { return made(PartByNumber{subject(), number}, span(part)); }, tests, captures);
            ++number;
        }
        const auto names = nb::borrow<nb::list>(get(node, f.kwd_attrs));
        const auto patterns = nb::borrow<nb::list>(get(node, f.kwd_patterns));
        for (std::size_t i = 0; i < nb::len(names); ++i) {
            const nb::object part = patterns[i];
            const std::string name = nb::borrow<nb::str>(names[i]).c_str();
            pattern(part, [&] { return made(Attribute{subject(), name}, span(part)); }, tests, captures);
        }
    }

    void sequence(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                  std::vector<ExpressionPtr>& captures) {
        const auto parts = nb::borrow<nb::list>(get(node, fields().patterns));
        const Span at = span(node);
        const auto count = static_cast<std::int64_t>(nb::len(parts));
        std::int64_t star = -1;
        for (std::int64_t i = 0; i < count; ++i)
            if (node_of(parts[static_cast<std::size_t>(i)]) == Node::MatchStar) star = i;
        tests.push_back(made(LengthTest{subject(), star < 0 ? count : count - 1, star >= 0}, at));
        for (std::int64_t i = 0; i < count; ++i) {
            const nb::object part = parts[static_cast<std::size_t>(i)];
            // What stands behind a star counts from the end.
            const auto element = [&, index = star < 0 || i < star ? i : i - count] {
                Subscript chosen{subject(), {}};
                chosen.indices.push_back(integer_at(index, at));
                return made(std::move(chosen), at);
            };
            if (i != star) {
                pattern(part, element, tests, captures);
                continue;
            }
            Subscript chosen{subject(), {}};
            Slice taken{integer_at(i, at), i + 1 < count ? integer_at(i + 1 - count, at) : nullptr, nullptr};
            chosen.indices.push_back(made(std::move(taken), at));
            capture(part, made(std::move(chosen), at), captures);
        }
    }

    // ---- `else` of loops: see syntax/tree.h ----

    static ExpressionPtr made(Content content, Span span) {
        auto result = std::make_unique<Expression>();
        result->node = std::move(content);
        result->span = span;
        return result;
    }

    static std::unique_ptr<Statement> set_flag(const std::string& name, bool value, Span span) {
        Assign assign;
        assign.targets.push_back(made(Name{name}, span));
        assign.value = made(BoolLiteral{value}, span);
        return std::make_unique<Statement>(Statement{std::move(assign), span});
    }

    void loop(nb::handle node, Block& result) {
        nb::object otherwise = get(node, fields().orelse);
        const bool has_else = nb::len(otherwise) > 0;
        const std::string flag = has_else ? "$broke" + std::to_string(flags_++) : "";
        const Span at = span(node);
        if (has_else) result.push_back(set_flag(flag, false, at));
        broke_.push_back(flag);
        result.push_back(std::make_unique<Statement>(Statement{statement(node), at}));
        broke_.pop_back();
        if (!has_else) return;
        If branch{made(Unary{UnaryOperator::logical_not, made(Name{flag}, at)}, at), block(otherwise), {}};
        result.push_back(std::make_unique<Statement>(Statement{std::move(branch), at}));
    }

    const Source& source_;
    int line_offset_;
    IsAdjoint is_adjoint_;
    std::vector<std::string>
        broke_;  // of the loops around, the flag that says they were left by break; "" without else
    int flags_ = 0;
    int scopes_ = 0;                  // the last number of a lambda, a comprehension or a match
    std::vector<Expression*> names_;  // every name read so far, for number()
    std::set<std::string> nonlocal_;  // of the function being read
};

}  // namespace

std::string ExpressionPlace::text(const Source& source) const {
    std::string result;
    for (int number = line; number <= end_line; ++number) {
        const std::string& whole = source.line(number);
        const auto first = number == line ? static_cast<std::size_t>(begin) : 0;
        const auto last = number == end_line ? static_cast<std::size_t>(end) : whole.size();
        result += whole.substr(first, last - first) + (number == end_line ? "" : "\n");
    }
    return result;
}

ReadTree read_tree(const ParsedFunction& parsed, IsAdjoint is_adjoint) {
    auto function = std::make_shared<Function>();
    TreeReader reader(parsed, std::move(is_adjoint));
    const FieldNames& f = fields();
    function->source = parsed.source;
    function->name = get_text(parsed.definition, f.name);
    function->span = reader.span(parsed.definition);
    reader.signature(get(parsed.definition, f.args), *function);
    if (nb::object result = get(parsed.definition, f.returns); !result.is_none())
        function->result_span = reader.span(result);
    function->body = reader.block(get(parsed.definition, f.body));
    return {std::move(function), std::move(reader.places)};
}

}  // namespace weft::frontend
