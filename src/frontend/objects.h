// The questions of the frontend about Python objects whose classes belong to bindings/: the type of a class, the
// contents of a typed value. This room declares the functions, as it needs them. They are defined in
// bindings/kernels/frontend_objects.cpp, because bindings/ includes frontend/ and not the reverse.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "types/pattern.h"
#include "types/type.h"

namespace weft::frontend {

namespace nb = nanobind;

// float, wp.vec3, numpy.float32, a struct class. Empty if `object` is no type of values.
std::optional<Type> type_from_python(nb::handle object);
// A parameter's annotation: a type of values or of arrays, or a generic one. Empty if it is neither.
std::optional<TypePattern> annotation_pattern(nb::handle object);
nb::object type_to_python(Type type);

// A value that carries its type: wp.float64(1.0), wp.vec3(1.0, 2.0, 3.0), numpy.int64(3).
struct TypedConstant {
    Type type;
    std::vector<Number> numbers;
};
std::optional<TypedConstant> typed_constant(nb::handle object);
nb::object constant_to_python(const TypedConstant& constant);

// The type of an instance of a @wp.struct; empty for other objects.
std::optional<Type> struct_type(nb::handle object);

// Why a kernel cannot read this object as a constant ("an array; pass it as a parameter"); "" if its attributes may be
// read.
std::string why_unusable(nb::handle object);
// "numpy.ndarray of shape (3,) and dtype float64", for messages.
std::string describe_object(nb::handle object);

// tp_call of _weft.Builtin: a call from Python, outside of kernels.
PyObject* call_builtin(PyObject* self, PyObject* arguments, PyObject* keywords);

}  // namespace weft::frontend
