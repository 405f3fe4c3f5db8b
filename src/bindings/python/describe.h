// Objects of Python in messages.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace weft::bindings {

namespace nb = nanobind;

// A NumPy array (of any number of dimensions), without importing NumPy.
bool is_numpy_array(nb::handle object);
// "float", "numpy.ndarray of shape (3,) and dtype float64": a description of a value for messages.
std::string describe(nb::handle value);

}  // namespace weft::bindings
