// The result of from_torch(..., return_ctype=True): an array that only launches accept. It is the quickest conversion:
// the data that a launch reads of the tensor, without a Python array. Gradients, tapes and recorded launches need more:
// they make the Python array.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "runtime/array.h"

namespace weft::bindings {

namespace nb = nanobind;

struct ArrayStructure {
    PyObject_HEAD PyObject* array;      // null until it is needed
    PyObject* owner;                    // of the memory, until then
    runtime::Array shown;               // without a buffer
    std::optional<runtime::Home> home;  // of memory that may move
};

extern PyTypeObject* array_structure_type;

inline bool is_array_structure(PyObject* object) { return Py_TYPE(object) == array_structure_type; }
// The array inside; borrowed.
PyObject* array_in(PyObject* structure);
// For an array of numbers: the array of vectors, matrices, ... that they are components of; empty if there is none.
nb::object as_elements_of(PyObject* array, Type element, int ndim);
// The view of a structure without an array inside, if a launch can use it as it is: these elements, this device, and
// memory that has not moved. Else null: array_in() then knows more.
const ArrayView* plain_view(PyObject* structure, Type element, int ndim, const runtime::Device& device);

nb::object make_array_structure(nb::object array);
// `shown` has no buffer; `owner` keeps its memory.
nb::object make_array_structure(runtime::Array shown, nb::object owner, std::optional<runtime::Home> home);

void bind_array_structure(nb::module_& m);

}  // namespace weft::bindings
