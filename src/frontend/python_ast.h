// CPython's ast for the frontend: the class of a node, and its fields by interned names, because a long kernel has ten
// thousand nodes.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "frontend/objects.h"
#include "syntax/tree.h"

namespace weft::frontend {

// The ast classes that the frontend distinguishes. Those that this version of Python does not have are skipped.
// clang-format off
#define WEFT_AST_CLASSES(X)                                                                                           \
    /* expressions */                                                                                                 \
    X(Name) X(Constant) X(Attribute) X(Subscript) X(Slice) X(Call) X(UnaryOp) X(BinOp) X(BoolOp) X(Compare)           \
    X(IfExp) X(Tuple) X(List) X(Starred) X(JoinedStr) X(FormattedValue) X(TemplateStr) X(Lambda) X(ListComp)          \
    X(SetComp) X(DictComp) X(GeneratorExp) X(Dict) X(Set) X(NamedExpr) X(Await) X(Yield) X(YieldFrom)                 \
    /* statements */                                                                                                  \
    X(Assign) X(AnnAssign) X(AugAssign) X(Expr) X(If) X(For) X(While) X(Return) X(Break) X(Continue) X(Pass)          \
    X(Assert) X(FunctionDef) X(AsyncFunctionDef) X(ClassDef) X(Delete) X(AsyncFor) X(With) X(AsyncWith) X(Match)      \
    X(Raise) X(Try) X(TryStar) X(Import) X(ImportFrom) X(Global) X(Nonlocal) X(TypeAlias)                             \
    /* patterns */                                                                                                    \
    X(MatchValue) X(MatchSingleton) X(MatchOr) X(MatchAs) X(MatchSequence) X(MatchStar) X(MatchMapping)               \
    X(MatchClass)                                                                                                     \
    /* operators */                                                                                                   \
    X(Add) X(Sub) X(Mult) X(MatMult) X(Div) X(FloorDiv) X(Mod) X(Pow) X(LShift) X(RShift) X(BitOr) X(BitXor)          \
    X(BitAnd) X(USub) X(UAdd) X(Invert) X(Not) X(And) X(Or) X(Lt) X(LtE) X(Gt) X(GtE) X(Eq) X(NotEq) X(Is)            \
    X(IsNot) X(In) X(NotIn)
// clang-format on

enum class Node {
    unknown,
#define X(name) name,
    WEFT_AST_CLASSES(X)
#undef X
};
Node node_of(nb::handle object);

// A field name, interned once.
struct FieldName {
    PyObject* text;
    explicit FieldName(const char* name) : text(PyUnicode_InternFromString(name)) {}
};
struct FieldNames {
#define WEFT_FIELD(name) FieldName name{#name};
    // clang-format off
    WEFT_FIELD(lineno) WEFT_FIELD(col_offset) WEFT_FIELD(end_lineno) WEFT_FIELD(end_col_offset) WEFT_FIELD(id)
    WEFT_FIELD(value) WEFT_FIELD(attr) WEFT_FIELD(slice) WEFT_FIELD(lower) WEFT_FIELD(upper) WEFT_FIELD(step)
    WEFT_FIELD(func) WEFT_FIELD(args) WEFT_FIELD(keywords) WEFT_FIELD(arg) WEFT_FIELD(op) WEFT_FIELD(operand)
    WEFT_FIELD(left) WEFT_FIELD(right) WEFT_FIELD(values) WEFT_FIELD(ops) WEFT_FIELD(comparators) WEFT_FIELD(test)
    WEFT_FIELD(body) WEFT_FIELD(orelse) WEFT_FIELD(elts) WEFT_FIELD(format_spec) WEFT_FIELD(conversion)
    WEFT_FIELD(targets) WEFT_FIELD(target) WEFT_FIELD(annotation) WEFT_FIELD(iter) WEFT_FIELD(msg) WEFT_FIELD(name)
    WEFT_FIELD(posonlyargs) WEFT_FIELD(kwonlyargs) WEFT_FIELD(kw_defaults) WEFT_FIELD(vararg) WEFT_FIELD(kwarg) WEFT_FIELD(defaults)
    WEFT_FIELD(returns) WEFT_FIELD(names) WEFT_FIELD(elt) WEFT_FIELD(generators) WEFT_FIELD(ifs) WEFT_FIELD(is_async)
    WEFT_FIELD(exc) WEFT_FIELD(cause) WEFT_FIELD(subject) WEFT_FIELD(cases) WEFT_FIELD(pattern) WEFT_FIELD(patterns)
    WEFT_FIELD(guard) WEFT_FIELD(decorator_list) WEFT_FIELD(cls) WEFT_FIELD(kwd_attrs) WEFT_FIELD(kwd_patterns)
    // clang-format on
#undef WEFT_FIELD
};
const FieldNames& fields();

nb::object get(nb::handle node, const FieldName& field);
int get_int(nb::handle node, const FieldName& field);
std::string get_text(nb::handle node, const FieldName& field);

syntax::BinaryOperator binary_operator(nb::handle op);
syntax::UnaryOperator unary_operator(nb::handle op);
syntax::CompareOperator compare_operator(nb::handle op);

// Nodes that kernels do not support, by their name in errors; null for the others.
const char* unsupported_expression(Node node);
const char* unsupported_statement(Node node);

// Throws the exception of a signal's handler: Ctrl-C ends the reading of a long function. The caller holds the GIL.
void ask_for_signals();

}  // namespace weft::frontend
