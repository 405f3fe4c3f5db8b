// The inside of the Python class `array`, shared by the files that make it:
//
//   array_object.cpp     the type itself: life, annotations, functions that the other files share
//   array_attributes.cpp shape, dtype, grad ...
//   array_layout.cpp     setting shape, strides, ptr ...
//   array_construct.cpp  array(...): from lists, NumPy, other arrays, addresses
//   array_functions.cpp  empty, zeros, full, clone, copy ...: the module's functions
//   array_index.cpp      a[...] and a[...] = value
//   array_copies.cpp     copy, deepcopy, pickle
//   array_methods.cpp    reshape, fill_, list ...
//   array_arithmetic.cpp a + b, a < b, a @ b
//   array_numpy.cpp      numpy(), the buffer protocol, __array_interface__, foreign arrays
#pragma once

#include <nanobind/stl/string.h>

#include <vector>

#include "bindings/arrays/array.h"
#include "bindings/python/fastcall.h"
#include "bindings/values/types.h"
#include "program/host/host.h"
#include "runtime/bytes.h"
#include "runtime/device.h"
#include "runtime/graph.h"
#include "support/error.h"

namespace weft::bindings {

namespace numpy {
struct NdArray;
}

struct ArrayHead {
    PyObject_HEAD PyObject* attributes;  // attributes that programs add to arrays; null until then
    PyObject* weak_references;
};
struct ArrayObject : ArrayHead {
    PyArray value;
};
static_assert(sizeof(ArrayObject) == sizeof(ArrayHead) + sizeof(PyArray));

// The class `array`; made by bind_arrays.
extern PyTypeObject* array_type;
extern PyGetSetDef array_attributes[];

inline PyArray& value_of(PyObject* self) { return reinterpret_cast<ArrayObject*>(self)->value; }
// The same, for functions that need memory: throws UsageError if it is an annotation, or its memory is gone.
PyArray& memory_of(PyObject* self, const char* api);

// The Python object that a variable on a tape is a part of.
nb::object object_of(const program::Variable& variable);

// New references.
PyObject* make_array(runtime::Array array, PyTypeObject* type = array_type);
PyObject* make_annotation(nb::handle dtype, int ndim);

// A view made by `view` (Array -> Array), with the same view of the gradient.
template <typename View>
PyObject* make_view(PyArray& of, View&& view) {
    PyObject* result = make_array(view(of.array));
    PyArray& made = value_of(result);
    made.pinned = of.pinned;
    made.retain_grad = of.retain_grad;
    if (!of.requires_grad) return result;
    made.requires_grad = true;
    made.gradient = of.gradient;
    return result;
}

// The class of the elements, also of a generic annotation.
nb::object dtype_of(PyArray& array);

// ---- arguments ----

// The type of `dtype=`: fast for classes that were seen before. Null and None give float32.
Type dtype_argument(PyObject* dtype, const char* api);
// typing.Any, which means "take it from the data".
bool is_any(PyObject* dtype);
runtime::Shape shape_argument(PyObject* shape, const char* api);
// `shape`, or one of its old names `n` and `length`: one of them, or none for an array without elements.
runtime::Shape shape_argument(PyObject* shape, PyObject* n, PyObject* length, const char* api);
// An argument that must be an array with memory.
PyArray& array_argument(PyObject* object, const char* api, const char* name);

// ---- gradients ----

// Zeros of the same shape and strides.
void allocate_gradient(PyArray& array);
// Whether a tape leaves the array the gradient of its last contents. Throws UsageError if it has none.
void set_retain_grad(PyArray& array, bool retains, const char* api);
// None takes the gradient away.
void set_gradient(PyArray& array, PyObject* gradient, const char* api);

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
// Numbers, vectors or matrices of floats that NumPy lacks.
bool is_bits_in_numpy(Type dtype);
// The same to be read as numbers: a copy in float32 if NumPy would show the bits of such floats.
nb::object numbers_of(const runtime::Array& array, nb::handle keep_alive, const char* api);
// The memory of `view`, which belongs to `owner`: kept alive as long as a view of it.
runtime::BufferPtr borrowed_memory(const runtime::Array& view, nb::handle owner, bool is_read_only = false);
// Extents inside an element: none for scalars, (3,) for vec3, (2, 2) for mat22.
int inner_shape(Type dtype, std::int64_t inner[2]);

// ---- writing ----

// The bytes of one element from a value; a number fills all components of an aggregate. Empty if it does not fit.
std::optional<std::vector<std::byte>> element_bytes(PyObject* value, Type dtype);
void fill_array(PyArray& array, PyObject* value, const char* api);
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

// Runs `work` without the GIL if it moves enough bytes to make up for that.
template <typename Work>
void without_gil(std::int64_t size_bytes, Work&& work) {
    program::without_host(size_bytes, std::forward<Work>(work));
}

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
// A function of one of our Python modules, which is imported at its first use and then kept in `kept`, null at first.
// `static PyObject* module = import(...)` would deadlock. An import runs Python code; another thread may get the GIL
// meanwhile, and wait at that line for the static, with the GIL that the import needs.
nb::object function_of(const char* module, PyObject*& kept, const char* name);
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
PyObject* array_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords);
PyObject* array_dlpack_device(PyObject* self, PyObject*);
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
void bind_array_functions(nb::module_& m);

}  // namespace weft::bindings
