// Records on a tape beside launches: writes of the host to arrays. Without a recording tape, all of this is one
// comparison.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/arrays/array.h"
#include "bindings/gradients/tape.h"

namespace weft::bindings {

// Counts a write to the array's memory: a tape that kept copies compares the counts.
void count_write(PyArray& array);

// To be called before the host writes all elements of `to`: those of `from`, in the same order, or, if that is null,
// numbers from elsewhere. Both are Python arrays.
void record_write(nb::handle to, nb::handle from);
void record_write(PyArray& to);

// A copy of an array's memory, with the same strides, gaps included, and without the gradient.
nb::object keep(nb::handle array);

void bind_recording(nb::module_& m);

}  // namespace weft::bindings
