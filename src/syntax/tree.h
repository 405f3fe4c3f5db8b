// The kernel as it was written: an untyped tree, one struct per construct, each documented by the syntax that makes it.
// frontend/ makes it from CPython's ast; sema/ reads it; nothing changes it. Locals and globals are not told apart
// here. One construct is taken apart by the reader: `else` of a loop, into a flag that `break` sets,
//
//     for x in y: ... break ...        $broke0 = False;  for x in y: ... $broke0 = True; break ...
//     else: z                          if not $broke0: z
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "support/source.h"

namespace weft::syntax {

struct Expression;
struct Statement;
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
};
struct IfExpression {
    ExpressionPtr condition, then_value, else_value;
};  // a if c else b
struct Tuple {
    std::vector<ExpressionPtr> elements;
};  // a, b   (and [a, b])
struct Starred {
    ExpressionPtr value;
};  // *a
struct FormattedString {
    std::vector<ExpressionPtr> parts;
    std::vector<std::string> formats;  // of each part what stands behind its colon: f"{x:.3f}"
};  // f"{a} and {b}": literals and values in order
// Anything Python allows and kernels do not; reported by sema when reached.
struct Unsupported {
    std::string what;
};  // "lambda", "list comprehension"

struct Expression {
    std::variant<Name, IntegerLiteral, FloatLiteral, BoolLiteral, StringLiteral, NoneLiteral, Attribute, Subscript,
                 Slice, Call, Unary, Binary, BoolOp, Compare, IfExpression, Tuple, Starred, FormattedString,
                 Unsupported>
        node;
    Span span;
    // Number of this expression in its function, in the order the frontend met them: Environment::evaluate (for
    // wp.static) finds the original ast node by it.
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
struct UnsupportedStatement {
    std::string what;
};  // "try", "with", "import"

struct Statement {
    std::variant<Assign, AnnotatedAssign, AugmentedAssign, ExpressionStatement, If, For, While, Return, Break, Continue,
                 Pass, Assert, UnsupportedStatement>
        node;
    Span span;
};

struct Parameter {
    std::string name;
    Span span;
    bool has_annotation = false;
    bool has_default = false;
};

struct Function {
    std::string name;
    std::vector<Parameter> parameters;
    Block body;
    Span span;                // of the `def` line
    Span result_span;         // of the annotation behind `->`; none where there is none
    SourcePtr source;         // keeps every span's text alive
    std::string unsupported;  // "*args", "keyword-only parameters", ...: what the signature has and kernels lack
};

// The function as readable text (for WEFT_DUMP=syntax and tests).
std::string print(const Function& function);
// One expression, without what surrounds it.
std::string print(const Expression& expression);

}  // namespace weft::syntax
