// What from_torch(..., return_ctype=True) gives: an array for launches alone, which nothing else takes. It costs less
// than an array in the system in use today; here it is an array in a thin wrapper, so that launches, tapes and
// gradients have one way.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

namespace nb = nanobind;

struct ArrayStructure {
    PyObject_HEAD PyObject* array;
};

extern PyTypeObject* array_structure_type;

inline bool is_array_structure(PyObject* object) { return Py_TYPE(object) == array_structure_type; }
// The array inside; borrowed.
inline PyObject* array_in(PyObject* structure) { return reinterpret_cast<ArrayStructure*>(structure)->array; }
nb::object make_array_structure(nb::object array);

void bind_array_structure(nb::module_& m);

}  // namespace weft::bindings
