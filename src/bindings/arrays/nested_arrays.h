// Arrays that lie in memory: elements of an array may be structs with array fields, whose elements may hold arrays in
// turn. Tapes ask for the arrays that a launch may reach through its arguments.
//
// Only memory that the holder is known to keep alive counts (runtime/buffer.h). Other bytes in the place of an
// array field, as in an array from wp.empty(), are ignored.
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
// A copy of an array with the same layout, whose elements lead to `copies` in place of `originals`, at any depth. Each
// copy has the layout of its original. Gradients are those of the copies; if these have none, they stay as they are.
nb::object with_nested(nb::handle array, nb::list originals, nb::list copies);
// A copy of an array with the same layout, whose nested arrays have new gradients: the arrays at the same places in
// `gradient`, an array of the same shape and dtype. Throws UsageError if these have another layout.
nb::object with_nested_gradients(nb::handle array, nb::handle gradient);

}  // namespace weft::bindings
