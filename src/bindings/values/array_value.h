// An array as a value of Python: the object of the class `array`, which holds the runtime array itself. The operations
// of the class are in arrays/.
//
// It is a plain CPython type and not a nanobind class, because programs make arrays and slices by the million: the
// object's functions are called without going through an overload chain.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "program/tape/variable.h"

namespace weft::bindings {

namespace nb = nanobind;

inline constexpr int kAnyDims = 0;  // of an annotation: wp.array[float, Any]
// Attributes that were set to different numbers of dimensions (arrays/array_layout.cpp).
struct PendingLayout {
    std::optional<runtime::Shape> shape, strides;
    std::optional<int> ndim;
};

// Bits of runtime::Buffer::marks. The first: structs in memory point to the array as one without a gradient. The
// second: it got a gradient afterwards, which those structs do not see.
inline constexpr std::uint8_t kKeptWithoutGradient = 1, kGotGradientLater = 2;

// The Python object's own part: the runtime array and data that only Python uses. `wp.array(dtype=float)` and
// `wp.array[float]` give an instance with is_annotation set and no memory; `array.dtype` is Kind::none there if the
// annotation is generic. Foreign memory (NumPy arrays, tensors) is kept alive by the runtime array's buffer.
struct PyArray : program::Variable {
    explicit PyArray(runtime::Array array) : Variable{std::move(array)} {}

    bool is_annotation = false;              // true for an annotation, and while a layout is pending
    std::unique_ptr<PendingLayout> pending;  // null except in the middle of a change
    bool pinned = false;                     // as requested; without a GPU there is no difference
    nb::object dtype;  // its class, null until its first use; `typing.Any` and the like in a generic annotation

    // The array of its gradient, or null. It is made at its first use; the caller may then do anything with it
    // (program/tape/gradient_memory.h).
    nb::handle grad() const;
    // The same if it has been made already.
    nb::handle known_grad() const { return grad_; }
    void set_grad(nb::object grad) { grad_ = std::move(grad); }

private:
    mutable nb::object grad_;
};

// For structs and code that may do anything with the addresses in it, the gradient's included.
inline const ArrayView& escaping_view(const PyArray& array) {
    program::mark_gradient_escaped(array);
    return array.array.view;
}

// "an array in the middle of a change: ...", of one with a pending layout.
std::string pending_text(const PyArray& array);

// ---- the object ----

struct ArrayHead {
    PyObject_HEAD PyObject* attributes;  // attributes that programs add to arrays; null until then
    PyObject* weak_references;
};
struct ArrayObject : ArrayHead {
    PyArray value;
};
static_assert(sizeof(ArrayObject) == sizeof(ArrayHead) + sizeof(PyArray));

// The class `array`, which arrays/ sets at import.
extern PyTypeObject* array_type;

// The array inside a Python object, or null for another object. No conversion.
PyArray* array_pointer(nb::handle object);
inline PyArray& value_of(PyObject* self) { return reinterpret_cast<ArrayObject*>(self)->value; }
// The same, for functions that need memory: throws UsageError if it is an annotation, or its memory is gone.
PyArray& memory_of(PyObject* self, const char* api);

// The Python object that a variable on a tape is a part of.
nb::object object_of(const program::Variable& variable);

// New references.
PyObject* make_array(runtime::Array array, PyTypeObject* type = array_type);
nb::object wrap_array(runtime::Array array, nb::handle dtype = nb::handle());
// The class of the elements, also of a generic annotation.
nb::object dtype_of(PyArray& array);
// An argument that must be an array with memory.
PyArray& array_argument(PyObject* object, const char* api, const char* name);

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

// ---- gradients ----

// Zeros of the same shape and strides.
void allocate_gradient(PyArray& array);
// Whether a tape leaves the array the gradient of its last contents. Throws UsageError if it has none.
void set_retain_grad(PyArray& array, bool retains, const char* api);
// None takes the gradient away.
void set_gradient(PyArray& array, PyObject* gradient, const char* api);

}  // namespace weft::bindings
