// Functions that are written in Python, in our own modules.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

namespace nb = nanobind;

// A function of one of our Python modules, which is imported at its first use and then kept in `kept`, null at first.
// `static PyObject* module = import(...)` would deadlock. An import runs Python code; another thread may get the GIL
// meanwhile, and wait at that line for the static, with the GIL that the import needs.
nb::object function_of(const char* module, PyObject*& kept, const char* name);

}  // namespace weft::bindings
