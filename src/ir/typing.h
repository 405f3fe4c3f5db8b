// What each operation takes and gives: the one statement of the typing rules, read by the builder (which computes
// result types), the parser (which leaves out what can be computed) and verify().
#pragma once

#include <span>
#include <stdexcept>

#include "ir/ir.h"

namespace weft::ir {

// An operation's operands, attributes or results do not fit. what() says which and what was expected, without a place.
class TypeMistake : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The part of `type` that a static path reaches: fields, tuple elements, components; a matrix row by one index, an
// entry by two. Throws TypeMistake.
Type part_type(Type type, std::span<const std::int64_t> path);

// How many scalars a constant of `type` is made of: components, those of struct fields in order. Throws TypeMistake for
// types that have no constants (arrays, strings, none).
std::int64_t leaf_count(Type type);
// True where a value of this type can be a way to memory: arrays, and what holds one.
bool holds_array(Type type);
// Of the largest vector or matrix in it, arrays left aside; 0 where there is none.
int most_components(Type type);
// True for types that have a derivative: floats and what has a float among its parts. Arrays have none: what they show
// has.
bool is_smooth(Type type);
// Whether a call of a library function gives what no derivative reaches: it takes neither numbers that have one nor
// arrays, but reads the values of a volume for example.
bool has_constant_result(const Operation& call);
// What the gradient of a function gives: the adjoints of the parameters that have a derivative, one by itself, several
// as a tuple.
Type gradient_type(const Function& function);
// The scalar of each leaf.
void append_leaves(Type type, std::vector<Scalar>& out);

// The type of the single result (none where there is no result) of an operation without regions. `stated` is the result
// type asked for; it matters where ops.def says "stated" only. Throws TypeMistake.
Type result_type(const Operation& operation, Type stated);

}  // namespace weft::ir
