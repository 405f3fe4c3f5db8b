// Arrays that lie in memory: elements of an array may be structs with array fields, whose elements may hold arrays in
// turn. Tapes ask what a launch may reach through its arguments.
//
// Only memory that the holder is known to keep counts (runtime/references.h). What else stands where an array field is,
// as in an array from wp.empty(), is not looked at.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "runtime/array.h"

namespace weft::bindings {

namespace nb = nanobind;

// Those in the elements of an array, or of the arrays in a struct, at any depth, each once, with their gradients.
std::vector<nb::object> nested_arrays(nb::handle value);
// Counts one write to each buffer that these lie in.
void count_nested_writes(nb::handle value);
// A copy of an array, laid out like it, whose elements lead to `copies` in place of `originals`, at any depth; each is
// laid out like the original. Gradients are those of the copies, or, where these have none, stay as they are.
nb::object with_nested(nb::handle array, nb::list originals, nb::list copies);
// A copy of an array, laid out like it, in which the arrays in the elements have as gradients those that lie in their
// places in `gradient`, an array of the same shape and dtype. Throws UsageError where these are of another layout.
nb::object with_nested_gradients(nb::handle array, nb::handle gradient);

}  // namespace weft::bindings
