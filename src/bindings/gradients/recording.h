// What a tape is told while it records besides launches: what the host writes to arrays. Where no tape records, all
// this is one comparison.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/arrays/array.h"
#include "bindings/gradients/tape.h"

namespace weft::bindings {

// Counts a write to the array's memory: a tape that kept copies compares.
void count_write(PyArray& array);

// Before the host writes all elements of `to`: those of `from`, in the same order, or, where that is null, numbers from
// elsewhere. Both are arrays of Python.
void record_write(nb::handle to, nb::handle from);
void record_write(PyArray& to);

// A copy of an array's memory, with the same strides, gaps included, and without the gradient.
nb::object keep(nb::handle array);

void bind_recording(nb::module_& m);

}  // namespace weft::bindings
