#include "bindings/kernels/generics.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <span>

#include "bindings/foreign/foreign.h"
#include "bindings/python/numpy_api.h"
#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"

namespace weft::bindings {
namespace {

using Shape = TypePattern::Shape;

// The element of an array of numbers if a kernel's annotation leaves it open: dimensions beyond those of the pattern
// are components, if the pattern asks for vectors or matrices.
Type element_of_numbers(Scalar scalar, std::span<const Py_intptr_t> shape, const TypePattern& array) {
    const TypePattern& element = array.parts[0];
    if (element.is_exact()) return element.type;
    const int inner = static_cast<int>(shape.size()) - array.ndim;
    const bool is_vector = element.shape == Shape::vector && inner == 1;
    const bool is_matrix = element.shape == Shape::matrix && inner == 2;
    if (is_vector || is_matrix) {
        const std::span<const std::int64_t> extents(shape.subspan(static_cast<std::size_t>(array.ndim)));
        return element_of_extents(scalar, extents).value_or(Type::scalar(scalar));
    }
    if (element.shape == Shape::quaternion && inner == 1) return Type::quaternion(scalar);
    if (element.shape == Shape::transform && inner == 1) return Type::transform(scalar);
    return Type::scalar(scalar);
}

// Whether it is an array of another library. Arrays of the host may have the last attribute too, and raise on access.
bool has_memory(nb::handle value) {
    const auto has = [&](const char* name) { return PyObject_HasAttrString(value.ptr(), name) != 0; };
    return numpy::ndarray_pointer(value) || PyObject_CheckBuffer(value.ptr()) || has("__array_interface__") ||
           has("__dlpack__") || has("__cuda_array_interface__");
}

ArgumentType foreign_type(nb::handle value, const TypePattern& pattern) {
    const auto type_of = [&](Scalar scalar, std::span<const std::int64_t> shape) -> ArgumentType {
        if (pattern.ndim > 0) return {.type = Type::array(element_of_numbers(scalar, shape, pattern), pattern.ndim)};
        if (shape.empty() || shape.size() > kMaxDims) return {.why_not = "arrays have 1 to 4 dimensions"};
        return {.type = Type::array(Type::scalar(scalar), static_cast<int>(shape.size()))};
    };
    if (const numpy::NdArray* data = numpy::ndarray_pointer(value)) {
        const std::optional<Scalar> scalar = numpy::scalar_of(*data);
        return scalar ? type_of(*scalar, data->shape()) : ArgumentType{.why_not = "its numbers have no type in Weft"};
    }
    const std::optional<ForeignArray> found = read_foreign(value, {"launch()", "an array"});
    return found ? type_of(found->scalar, found->extents()) : ArgumentType{.why_not = "it is no array"};
}

}  // namespace

ArgumentType argument_type(nb::handle value, const TypePattern& pattern) {
    if (const PyArray* array = array_pointer(value)) {
        if (array->pending) return {.why_not = "it is " + pending_text(*array)};
        if (array->is_annotation) return {.why_not = "an annotation has no memory"};
        return {.type = Type::array(array->array.dtype, array->array.ndim)};
    }
    if (value.is_none()) return {.why_not = "None has no type"};
    if (pattern.shape == Shape::array) {
        return has_memory(value) ? foreign_type(value, pattern) : ArgumentType{.why_not = "it is no array"};
    }
    if (PyBool_Check(value.ptr())) return {.type = bool_type()};
    if (PyLong_Check(value.ptr())) return {.type = i32_type(), .is_literal = true};
    if (PyFloat_CheckExact(value.ptr())) return {.type = f32_type(), .is_literal = true};
    // Typed scalars, vectors and structs: their class is their type.
    const nb::handle python_class(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())));
    if (auto type = dtype_from_python(python_class)) return {.type = *type};
    if (const Value* typed = value_pointer(value)) return {.type = typed->type()};
    if (numpy::ndarray_pointer(value))
        return {.why_not = "a NumPy array may be an array or a vector. help: wp.array()"};
    return {.why_not = "it is neither an array nor a value with a type"};
}

}  // namespace weft::bindings
