// The kernel as it was written: an untyped tree, one struct per construct, each documented by its syntax. frontend/
// makes it from CPython's ast, and sema/ reads it; it never changes. Locals and globals are not told apart here. The
// reader lowers three constructs (frontend/tree_reader.cpp). `else` of a loop becomes a flag that `break` sets. `def`
// within a function becomes a lambda with statements. `match` becomes branches.
//
//     for x in y: ... break ...        $broke0 = False;  for x in y: ... $broke0 = True; break ...
//     else: z                          if not $broke0: z
//
//     def f(x): return x + s           f = lambda x'1: x'1 + s
//
// The variables of a lambda and of a comprehension carry a number behind a quote: no two functions have a variable of
// the same name. So names in a lambda mean the same at each of its calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "support/source.h"

namespace weft::syntax {

struct Expression;
struct Statement;
struct Function;
using ExpressionPtr = std::unique_ptr<Expression>;
using Block = std::vector<std::unique_ptr<Statement>>;

enum class BinaryOperator : std::uint8_t {
    add,
    sub,
    mul,
    matmul,
    div,
    floordiv,
    mod,
    pow,
    lshift,
    rshift,
    bit_or,
    bit_xor,
    bit_and
};
enum class UnaryOperator : std::uint8_t { negate, plus, invert, logical_not };
enum class CompareOperator : std::uint8_t { lt, le, gt, ge, eq, ne, is, is_not, in, not_in };

// ---- expressions ----
struct Name {
    std::string id;
};  // x
struct IntegerLiteral {
    std::int64_t value;
    bool overflow;
    std::string text;
};  // 3; overflow: does not fit u64/i64
struct FloatLiteral {
    double value;
};  // 3.0
struct BoolLiteral {
    bool value;
};  // True
struct StringLiteral {
    std::string value;
};  // "text"
struct NoneLiteral {};  // None
struct Attribute {
    ExpressionPtr object;
    std::string name;
};  // object.name
struct Subscript {
    ExpressionPtr object;
    std::vector<ExpressionPtr> indices;
};  // object[i, j]
struct Slice {
    ExpressionPtr start, stop, step;
};  // a:b:c, only inside a Subscript; parts may be null
struct Keyword {
    std::string name;
    ExpressionPtr value;
};  // name=value
struct Call {
    ExpressionPtr function;
    std::vector<ExpressionPtr> arguments;
    std::vector<Keyword> keywords;
};
struct Unary {
    UnaryOperator op;
    ExpressionPtr operand;
};
struct Binary {
    BinaryOperator op;
    ExpressionPtr left, right;
};
struct BoolOp {
    bool is_and;
    std::vector<ExpressionPtr> operands;
};  // a and b and c
struct Compare {
    ExpressionPtr left;
    std::vector<CompareOperator> ops;
    std::vector<ExpressionPtr> operands;
    bool is_pattern = false;  // of a case: objects of other kinds are unequal
};
struct IfExpression {
    ExpressionPtr condition, then_value, else_value;
};  // a if c else b
struct Tuple {
    std::vector<ExpressionPtr> elements;
    bool is_list = false;
};  // a, b   [a, b]
struct Starred {
    ExpressionPtr value;
};  // *a
struct FormattedString {
    std::vector<ExpressionPtr> parts;
    std::vector<std::string> formats;  // by part: the format behind its colon, f"{x:.3f}"
    std::set<std::size_t> quoted;      // parts with !r or !a: strings among them are shown in quotes
    std::string problem;               // the fault in the text of a format(), if it has one
};  // f"{a} and {b}", "{} and {}".format(a, b): literals and values in order
struct Named {
    ExpressionPtr target, value;
};  // (target := value); the target is a Name
struct Generator {
    ExpressionPtr target, iterable;
    std::vector<ExpressionPtr> conditions;
};  // for target in iterable if condition
struct Comprehension {
    ExpressionPtr element;
    std::vector<Generator> generators;
    int scope;  // the number that its variables carry
};  // [element for x in y], (element for x in y)
struct LengthTest {
    ExpressionPtr object;
    std::int64_t length;
    bool or_more;
};  // case (a, b) or (a, *b): whether the object is a sequence of this length
struct ClassTest {
    ExpressionPtr object, type;
};  // case Point(...): whether the object is of this type
struct PartByNumber {
    ExpressionPtr object;
    std::int64_t number;
};  // case Point(0, y): the field with this number; of a number itself
struct Lambda {
    std::shared_ptr<const Function> function;
    std::vector<ExpressionPtr> annotations;  // one per parameter, null if it has none
    ExpressionPtr result;                    // the annotation behind `->`, may be null
    std::vector<ExpressionPtr> defaults;     // one per parameter, null if it has none
};  // lambda x: x + 1, as a function that returns
// Anything that Python allows and kernels do not; sema reports it if it is reached.
struct Unsupported {
    std::string what;
};  // "lambda", "list comprehension"

struct Expression {
    std::variant<Name, IntegerLiteral, FloatLiteral, BoolLiteral, StringLiteral, NoneLiteral, Attribute, Subscript,
                 Slice, Call, Unary, Binary, BoolOp, Compare, IfExpression, Tuple, Starred, FormattedString, Named,
                 Comprehension, LengthTest, ClassTest, PartByNumber, Lambda, Unsupported>
        node;
    Span span;
    // The number of this expression in its function, in the order in which the frontend met them. Environment::evaluate
    // (for wp.static) finds the original ast node by it.
    int id = -1;
};

// ---- statements ----
struct Assign {
    std::vector<ExpressionPtr> targets;
    ExpressionPtr value;
};  // a = b = value; a, b = value
struct AnnotatedAssign {
    ExpressionPtr target, annotation, value;
};  // x: int = 3 (value may be null)
struct AugmentedAssign {
    ExpressionPtr target;
    BinaryOperator op;
    ExpressionPtr value;
};  // a += value
struct ExpressionStatement {
    ExpressionPtr value;
};
struct If {
    ExpressionPtr condition;
    Block then_block, else_block;
};
struct For {
    ExpressionPtr target, iterable;
    Block body;
};
struct While {
    ExpressionPtr condition;
    Block body;
};
struct Return {
    ExpressionPtr value;
};  // value may be null
struct Break {};
struct Continue {};
struct Pass {};
struct Assert {
    ExpressionPtr condition, message;
};  // message may be null
struct Raise {
    ExpressionPtr exception;
};  // may be null
struct UnsupportedStatement {
    std::string what;
};  // "try", "with", "import"

struct Statement {
    std::variant<Assign, AnnotatedAssign, AugmentedAssign, ExpressionStatement, If, For, While, Return, Break, Continue,
                 Pass, Assert, Raise, UnsupportedStatement>
        node;
    Span span;
};

struct Parameter {
    std::string name;
    Span span;
    bool has_annotation = false;
    bool has_default = false;
    bool keyword_only = false;  // behind a '*': such parameters come last
};

struct Function {
    std::string name;
    std::vector<Parameter> parameters;
    Block body;
    Span span;                // of the `def` line
    Span result_span;         // of the annotation behind `->`; null if there is none
    SourcePtr source;         // keeps every span's text alive
    std::string unsupported;  // a part of the signature that kernels lack: "*args", "**options"
    int scope = 0;            // of a lambda, the number that its variables carry
};

// The name as the user wrote it, without the number of a lambda.
inline std::string spelled(const std::string& name) { return name.substr(0, name.find('\'')); }
// Whether the variable belongs to the lambda or comprehension with this number.
inline bool is_own(const std::string& name, int scope) { return name.ends_with("'" + std::to_string(scope)); }
inline bool is_of_lambda(const std::string& name) { return name.find('\'') != std::string::npos; }

// The function as readable text (for WEFT_DUMP=syntax and tests).
std::string print(const Function& function);
// One expression, without its surroundings.
std::string print(const Expression& expression);

}  // namespace weft::syntax
