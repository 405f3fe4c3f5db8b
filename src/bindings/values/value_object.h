// The inside of the classes of typed values, shared by the files that values.h lists.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/fastcall.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "support/error.h"

namespace weft::bindings {

struct ValueObject {
    PyObject_HEAD PyObject* attributes;  // attributes that programs add to values; null until then
    Value value;
};

inline Value& value_of_object(PyObject* self) { return reinterpret_cast<ValueObject*>(self)->value; }
inline std::string name_of(const Value& value) { return value.type().python_name(); }

// ---- value_construct.cpp ----
using Arguments = std::span<PyObject* const>;
using Keywords = std::vector<std::pair<std::string, nb::handle>>;
// Fills a value of the type with the result of `type(*arguments, **keywords)`. Throws UsageError if they do not fit.
void fill_value(Value& value, Arguments arguments, const Keywords& keywords);

// ---- value_index.cpp ----
nb::object load_component(const Value& value, int index);
void store_component(Value& value, int index, nb::handle number);
PyObject* value_subscript(PyObject* self, PyObject* index);
PyObject* value_item(PyObject* self, Py_ssize_t index);
int value_assign_subscript(PyObject* self, PyObject* index, PyObject* value);
extern PyMethodDef kMatrixMethods[];  // get_row, set_col ...

// ---- value_text.cpp ----
std::string repr_of(const Value& value);
std::string text_of(const Value& value);

// ---- value_memory.cpp ----
int get_value_buffer(PyObject* self, Py_buffer* view, int flags);
void release_value_buffer(PyObject* self, Py_buffer* view);
extern PyMethodDef kValueMethods[];  // from_ptr, from_buffer, pickling
void bind_value_memory(nb::module_& m);

// ---- value_arithmetic.cpp ----
extern PyType_Slot kOperatorSlots[];  // ended by {0, nullptr}
PyObject* compare_values(PyObject* left, PyObject* right, int op);

}  // namespace weft::bindings
