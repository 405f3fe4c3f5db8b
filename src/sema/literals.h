// Numbers known at compile time: ranges of types, literals that adapt to the other operand, and folding.
//
// A literal is an exact number (64-bit integer or double) without a type. Arithmetic between literals stays exact and
// gives a literal, so that `x * (1.0 / 3.0)` is right for a float64 x. Arithmetic between typed constants (variables
// of unrolled loops, wp.constant of a typed value) is that of their type and folds to a typed constant.
#pragma once

#include <optional>
#include <string>

#include "syntax/tree.h"
#include "types/type.h"

namespace weft::sema {

// The text of the number in messages: "3", "0.5".
std::string spelling(Number number);
// Equality that tells 0.0 from -0.0 and takes NaN as equal to itself.
bool same_bits(Number a, Number b);

// Whether a literal may become this scalar. An int literal fits any int type that holds it and any float type. A float
// literal fits any float type in which a finite number stays finite.
bool literal_fits(Number literal, Scalar scalar);
// The literal as a number of that scalar. Precondition: literal_fits.
Number literal_as(Number literal, Scalar scalar);
// "-128 to 127"; integers only.
std::string range_text(Scalar scalar);

// Folds `a op b` on two constants of one scalar type; empty if it does not fold (division by zero, matmul). For
// literals `scalar` is i64 or f64, and the result is empty if an integer exceeds 64 bits.
std::optional<Number> fold(syntax::BinaryOperator op, Scalar scalar, Number a, Number b, bool exact);
bool fold(syntax::CompareOperator op, Scalar scalar, Number a, Number b);  // lt ... ne

}  // namespace weft::sema
