// NumPy arrays at C speed: reading the fields of an ndarray and making one over given memory.
//
// NumPy publishes a table of functions (the capsule `_ARRAY_API`) whose order never changes, and the ndarray struct,
// which has been the same since 1.7. The parts that Weft uses are declared here, so that building Weft needs no NumPy
// and one build works with NumPy 1 and 2. Source: NumPy reference, "Array API" and "Python types and C-structures".
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "types/type.h"

namespace weft::bindings::numpy {

namespace nb = nanobind;

struct Descriptor {
    PyObject_HEAD PyTypeObject* type;
    char kind;
    char letter;
    char byte_order;  // '=' native, '<', '>', '|' if it does not apply
    char flags;
    int number;
};

struct NdArray {
    PyObject_HEAD char* data;
    int ndim;
    Py_intptr_t* dimensions;
    Py_intptr_t* strides;
    PyObject* base;
    Descriptor* descriptor;
    int flags;

    bool is_contiguous() const { return flags & 0x0001; }  // C order
    bool is_aligned() const { return flags & 0x0100; }
    bool is_writable() const { return flags & 0x0400; }
    std::span<const Py_intptr_t> shape() const { return {dimensions, static_cast<std::size_t>(ndim)}; }
    std::int64_t size() const;
};

// Null if `object` is no ndarray.
const NdArray* ndarray_pointer(nb::handle object);
// The scalar type of its elements, also of the dtypes of the package ml_dtypes; empty for elements that Weft has no
// type for: complex, object, text, foreign byte order ...
std::optional<Scalar> scalar_of(const NdArray& array);

// An ndarray over `data`, in C order if `strides` is null; it keeps `base` (may be null) alive. A float that NumPy
// lacks (ScalarInfo::is_bits_in_numpy()) has the dtype of ml_dtypes. Without that package it is an unsigned integer,
// the bits.
nb::object make_ndarray(Scalar scalar, std::span<const Py_intptr_t> shape, const Py_intptr_t* strides, void* data,
                        nb::handle base, bool is_writable = true);
// Copies with NumPy's unsafe casting and broadcasting.
void copy_into(nb::handle destination, nb::handle source);
// The dtype that ml_dtypes has for a float that NumPy lacks; null if the package is not installed.
nb::object package_dtype(Scalar scalar);
// Unsigned integers of the same shape: the bits of such floats. An array of these integers is returned as it is; other
// numbers are rounded.
nb::object bits_of_numbers(nb::handle array, Scalar scalar);
// The scalar type of a dtype of ml_dtypes with this name ("bfloat16"); empty for others.
std::optional<Scalar> scalar_of_package(std::string_view name);
// numpy.asarray(object).
nb::object as_array(nb::handle object);
// The module numpy.
nb::object module();

}  // namespace weft::bindings::numpy
