// Copies the ast of one function into syntax::Function. Reading order:
//
//   python_ast.h           nodes and fields
//   tree_reader.cpp        locations, and read_tree() itself
//   read_expressions.cpp   expressions
//   read_functions.cpp     signatures, lambdas, functions within functions, comprehensions
//   read_formats.cpp       f-strings and format()
//   read_statements.cpp    statements
//   read_patterns.cpp      match
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/expression_location.h"
#include "frontend/python_ast.h"
#include "frontend/source_text.h"
#include "syntax/tree.h"

namespace weft::frontend {

using namespace syntax;

struct ReadTree {
    std::shared_ptr<const syntax::Function> function;
    std::vector<ExpressionLocation> locations;  // by the expressions' ids
};

// `is_adjoint`: for a gradient (@wp.func_grad), whether an expression of Python means wp.adjoint. wp.adjoint[x] is then
// read as one name, "adjoint[x]": a local like any other.
using IsAdjoint = std::function<bool(const syntax::Expression& expression)>;
ReadTree read_tree(const ParsedFunction& parsed, IsAdjoint is_adjoint = {});

// The state that the parts of the reader share.
class TreeReader {
public:
    TreeReader(const ParsedFunction& parsed, IsAdjoint is_adjoint)
        : source_(*parsed.source), line_offset_(parsed.line_offset), is_adjoint_(std::move(is_adjoint)) {}

    std::vector<ExpressionLocation> locations;

    // The part on the first line; ast counts bytes of UTF-8, a Span counts characters.
    Span span(const ExpressionLocation& at) const;
    Span span(nb::handle node) const { return span(location(node)); }
    void signature(nb::handle arguments, Function& function);
    Block block(nb::handle list);

private:
    using Content = decltype(Expression::node);
    using StatementContent = decltype(Statement::node);
    using MakeSubject = std::function<ExpressionPtr()>;

    // ---- tree_reader.cpp ----
    ExpressionLocation location(nb::handle node) const;
    static int characters(const std::string& line, int bytes);

    // ---- read_expressions.cpp ----
    ExpressionPtr optional_expression(nb::handle node) { return node.is_none() ? nullptr : expression(node); }
    ExpressionPtr expression(nb::handle node);
    std::vector<ExpressionPtr> expressions(nb::handle list);
    Content content(nb::handle node);
    Content constant(nb::handle value);
    Content integer(nb::handle value);
    std::vector<ExpressionPtr> indices(nb::handle slice);
    Content call(nb::handle node);
    Content compare(nb::handle node);
    static ExpressionPtr made(Content content, Span span);

    // ---- read_functions.cpp ----
    void number(const std::set<std::string>& variables, int scope, std::size_t since);
    Content comprehension(nb::handle node);
    Content lambda(nb::handle node, const std::string& name);

    // ---- read_formats.cpp ----
    Content formatted(nb::handle node);
    Content formatted_by_call(nb::handle node, const std::string& text, Span at);

    // ---- read_statements.cpp ----
    StatementContent statement(nb::handle node);
    static std::unique_ptr<Statement> set_flag(const std::string& name, bool value, Span span);
    void loop(nb::handle node, Block& result);

    // ---- read_patterns.cpp ----
    void match(nb::handle node, Block& result);
    static ExpressionPtr last_of(std::vector<ExpressionPtr> before, ExpressionPtr last);
    static ExpressionPtr all_of(std::vector<ExpressionPtr> tests);
    static ExpressionPtr integer_at(std::int64_t value, Span at);
    void pattern(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                 std::vector<ExpressionPtr>& captures);
    void capture(nb::handle node, ExpressionPtr value, std::vector<ExpressionPtr>& captures);
    void alternatives(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests);
    void of_class(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                  std::vector<ExpressionPtr>& captures);
    void sequence(nb::handle node, const MakeSubject& subject, std::vector<ExpressionPtr>& tests,
                  std::vector<ExpressionPtr>& captures);

    const Source& source_;
    int line_offset_;
    IsAdjoint is_adjoint_;
    // For each enclosing loop, the flag for having been left by break; "" without else.
    std::vector<std::string> broke_;
    int flags_ = 0;
    int scopes_ = 0;                  // the last number of a lambda, a comprehension or a match
    std::vector<Expression*> names_;  // every name read so far, for number()
    std::set<std::string> nonlocal_;  // of the function being read
};

}  // namespace weft::frontend
