// The types of operands and results of each operation: the one statement of the typing rules. The builder computes
// result types by it, the parser leaves out types that it computes, and verify() checks them.
#pragma once

#include <span>
#include <stdexcept>

#include "ir/ir.h"

namespace weft::ir {

// An operation's operands, attributes or results do not fit. The message names the mistake and the expectation, without
// a source position.
class TypeMistake : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The part of `type` that a static path reaches: fields, tuple elements, components; a matrix row by one index, an
// entry by two. Throws TypeMistake.
Type part_type(Type type, std::span<const std::int64_t> path);

// The number of scalars in a constant of `type`: components, those of struct fields in order. Throws TypeMistake for
// types that have no constants (arrays, strings, none).
std::int64_t leaf_count(Type type);
// True if a value of this type may give access to memory: arrays, and aggregates that hold one.
bool holds_array(Type type);
// The number of components of the largest vector or matrix in the type, without looking into arrays; 0 if there is
// none.
int most_components(Type type);
// True for types that have a derivative: floats, and aggregates with floats among their parts. Not arrays: their
// elements have it.
bool is_smooth(Type type);
// Whether the result of a library function call has no derivative, as no operand has one and none is an array: for
// example a read of a volume.
bool has_constant_result(const Operation& call);
// The result type of the gradient of a function: the adjoints of the parameters that have a derivative, a single one by
// itself, several as a tuple.
Type gradient_type(const Function& function);
// The scalar of each leaf.
void append_leaves(Type type, std::vector<Scalar>& out);

// The type of the single result of an operation without regions; none if there is no result. `stated` is the result
// type asked for; it matters only if ops.def says "stated". Throws TypeMistake.
Type result_type(const Operation& operation, Type stated);

}  // namespace weft::ir
