// What from_torch(..., return_ctype=True) gives: an array for launches alone, which nothing else takes. It is the
// quickest conversion: what a launch reads of the tensor, without an array of Python's around it. That is made where
// more is asked for: gradients, tapes, recorded launches.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "runtime/array.h"

namespace weft::bindings {

namespace nb = nanobind;

struct ArrayStructure {
    PyObject_HEAD PyObject* array;      // null as long as nobody has asked for it
    PyObject* owner;                    // of the memory, until then
    runtime::Array shown;               // without a buffer
    std::optional<runtime::Home> home;  // of memory that may move
};

extern PyTypeObject* array_structure_type;

inline bool is_array_structure(PyObject* object) { return Py_TYPE(object) == array_structure_type; }
// The array inside; borrowed.
PyObject* array_in(PyObject* structure);
// Of an array of numbers, the array of vectors, matrices, ... whose components these are; empty where it is none.
nb::object as_elements_of(PyObject* array, Type element, int ndim);
// The view of what has no array inside, where a launch can take it as it is: the elements are these, on this device,
// and the memory is where it was. Null else: array_in() then knows more.
const ArrayView* plain_view(PyObject* structure, Type element, int ndim, const runtime::Device& device);

nb::object make_array_structure(nb::object array);
// `shown` has no buffer; `owner` keeps its memory.
nb::object make_array_structure(runtime::Array shown, nb::object owner, std::optional<runtime::Home> home);

void bind_array_structure(nb::module_& m);

}  // namespace weft::bindings
