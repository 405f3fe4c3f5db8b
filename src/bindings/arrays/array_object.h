// The class `array` in Python (its object: values/array_value.h), shared by the files that make it:
//
//   array_object.cpp     the type itself: life, annotations, functions that the other files share
//   writes.cpp           reports of writes to the tape
//   array_attributes.cpp shape, dtype, grad ...
//   array_layout.cpp     setting shape, strides, ptr ...
//   array_construct.cpp  array(...): from lists, NumPy, other arrays, addresses
//   array_functions.cpp  empty, zeros, full, clone, copy ...: the module's functions
//   array_index.cpp      a[...] and a[...] = value
//   array_copies.cpp     copy, deepcopy, pickle
//   array_methods.cpp    reshape, fill_, list ...
//   array_arithmetic.cpp a + b, a < b, a @ b
//   array_numpy.cpp      numpy(), the buffer protocol, __array_interface__
#pragma once

#include <nanobind/stl/string.h>

#include <vector>

#include "bindings/python/fastcall.h"
#include "bindings/python/lock.h"
#include "bindings/python/python_function.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "runtime/bytes.h"
#include "runtime/device.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::bindings {

namespace numpy {
struct NdArray;
}

extern PyGetSetDef array_attributes[];

// A new reference.
PyObject* make_annotation(nb::handle dtype, int ndim);

// ---- arguments ----

// typing.Any, which means "take it from the data".
bool is_any(PyObject* dtype);
runtime::Shape shape_argument(PyObject* shape, const char* api);
// `shape`, or one of its old names `n` and `length`: one of them, or none for an array without elements.
runtime::Shape shape_argument(PyObject* shape, PyObject* n, PyObject* length, const char* api);

// ---- making arrays ----

struct Options {
    runtime::Device* device = nullptr;
    bool requires_grad = false;
    bool pinned = false;
    bool retain_grad = false;
};
// Wraps, and allocates the gradient if `options` ask for it.
PyObject* finish(runtime::Array array, const Options& options, PyTypeObject* type = array_type);
// The whole of array(...): `ndim` is 0, or fixed by array2d() and the like.
PyObject* construct_array(PyTypeObject* type, PyObject* const* args, Py_ssize_t count, PyObject* keywords, int ndim);
PyObject* construct_array(PyTypeObject* type, PyObject* args, PyObject* keywords, int ndim);
// The function that wp.array(ptr=..., deleter=...) was given for this memory; None if there is none.
nb::object deleter_of(const runtime::Array& array);
// An array from any data that array() takes. Kind::none as `dtype` infers it. A copy unless `copy` is false and the
// memory fits.
runtime::Array array_from_data(PyObject* data, Type dtype, std::optional<runtime::Shape> shape, bool copy,
                               runtime::Device& device, const char* api);

// ---- NumPy ----

// A view; throws if NumPy has no such type.
nb::object numpy_view(PyObject* self);
nb::object numpy_view(const runtime::Array& array, nb::handle keep_alive, const char* api);
// The same to be read as numbers: a copy in float32 if NumPy would show the bits of such floats.
nb::object numbers_of(const runtime::Array& array, nb::handle keep_alive, const char* api);

// ---- copies ----

// Copies of the memory of arrays, with the same strides, gaps included, and without gradients. Those that overlap do so
// in the copies of keep_together() too.
nb::object keep(nb::handle array);
nb::list keep_together(nb::list arrays);

// ---- writing ----

// The bytes of one element from a value; a number fills all components of an aggregate. Empty if it does not fit.
std::optional<std::vector<std::byte>> element_bytes(PyObject* value, Type dtype);
void fill_array(PyArray& array, PyObject* value, const char* api);
// Same bytes for the same numbers: equal dtypes, or aggregates of as many components of one scalar type.
bool same_memory(Type a, Type b);
// The array for a copy to elements of `dtype`: itself if these hold the same numbers, else its bytes as such elements,
// without a gradient. Throws if the sizes of the elements differ.
nb::object same_bytes(nb::handle array, Type dtype, const char* api);
// Structs contain the addresses of their arrays, which stay on their device: throws if a copy would move the structs to
// another device.
void require_same_reach(const runtime::Array& to, const runtime::Array& from, const char* api);
// wp.copy: all of `source` if count is 0.
void copy_elements(PyArray& to, PyArray& from, std::int64_t to_offset, std::int64_t from_offset, std::int64_t count,
                   const char* api);
// Writes any other value into a view, by NumPy's broadcasting and casting.
void write_foreign(const runtime::Array& view, PyObject* value, const char* api);
// Throws an OverflowError if a number of these, which came in Python lists, does not fit the elements; `help` ends its
// message.
void require_fit(const numpy::NdArray& numbers, Type dtype, const char* api, const char* help = "");

// ---- slots and tables that array_object.cpp gathers ----

PyObject* array_subscript(PyObject* self, PyObject* key);
int array_set_shape(PyObject* self, PyObject* value);
int array_set_strides(PyObject* self, PyObject* value, void*);
int array_set_ndim(PyObject* self, PyObject* value, void*);
int array_set_size(PyObject* self, PyObject* value, void*);
int array_set_ptr(PyObject* self, PyObject* value, void*);
int array_set_device(PyObject* self, PyObject* value, void*);
int array_set_capacity(PyObject* self, PyObject* value, void*);
int array_set_is_contiguous(PyObject* self, PyObject* value, void*);
int array_set_pinned(PyObject* self, PyObject* value, void*);
// Of wp.indexedarray (python/warp/_arrays/indexed.py): a function of that module; whether an object is one; its
// elements as an array of their own, and any other object as it is.
nb::object indexed_function(const char* name);
bool is_indexed(PyObject* object);
nb::object chosen_elements(PyObject* object);
int array_assign_subscript(PyObject* self, PyObject* key, PyObject* value);
PyObject* array_item(PyObject* self, Py_ssize_t index);
int array_get_buffer(PyObject* self, Py_buffer* buffer, int flags);
void array_release_buffer(PyObject* self, Py_buffer* buffer);
PyObject* array_interface(PyObject* self, void*);
PyObject* cuda_array_interface(PyObject* self, void*);
// Throws UsageError while a graph is being captured.
void refuse_reading(PyObject* self, const char* api);
PyObject* array_copy(PyObject* self, PyObject*);
PyObject* array_deep_copy(PyObject* self, PyObject* memo);
PyObject* array_reduce(PyObject* self, PyObject*);
PyObject* array_ipc_handle(PyObject* self, PyObject*);
PyObject* array_for_jax(PyObject* self, PyObject*);
PyObject* array_str(PyObject* self);
PyObject* array_repr(PyObject* self);
PyObject* array_compare(PyObject* a, PyObject* b, int op);
std::vector<PyType_Slot> arithmetic_slots();
extern PyMethodDef array_methods[];

void bind_arrays(nb::module_& m);
void bind_array_functions(nb::module_& m);
void bind_array_primitives(nb::module_& m);
void bind_ipc(nb::module_& m);

}  // namespace weft::bindings
