// The Python class `array`: construction, views, conversion.
//
// It is a plain CPython type and not a nanobind class, because programs make arrays and slices by the million: the
// object holds the runtime array itself, and its functions are called without going through an overload chain.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "program/tape/variable.h"

namespace weft::bindings {

namespace nb = nanobind;

class ForeignName;

inline constexpr int kAnyDims = 0;  // of an annotation: wp.array[float, Any]
// Attributes that were set to different numbers of dimensions (array_layout.cpp).
struct PendingLayout {
    std::optional<runtime::Shape> shape, strides;
    std::optional<int> ndim;
};
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
inline const ArrayView& shown_view(const PyArray& array) {
    program::show_gradient(array);
    return array.array.view;
}

// "an array in the middle of a change: ...", of one with a pending layout.
std::string pending_text(const PyArray& array);

// The array inside a Python object, or null for another object. No conversion.
PyArray* array_pointer(nb::handle object);
// An array of `element` and `ndim` over the memory of a foreign object (NumPy array, anything with __array_interface__
// or the buffer protocol), without copying; trailing dimensions become vector and matrix components. Throws UsageError
// if dtype, dimensions or inner strides do not fit. Empty if the object has no such interface. `outlives`: whether it
// is kept longer than the call that it is an argument of.
std::optional<runtime::Array> foreign_array(nb::handle object, Type element, int ndim, const ForeignName& name,
                                            bool outlives);
nb::object wrap_array(runtime::Array array, nb::handle dtype = nb::handle());

void bind_arrays(nb::module_& m);
void bind_array_primitives(nb::module_& m);
void bind_ipc(nb::module_& m);
void bind_devices(nb::module_& m);
void bind_memory(nb::module_& m);

}  // namespace weft::bindings
