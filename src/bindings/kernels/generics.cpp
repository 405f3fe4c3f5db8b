#include "bindings/kernels/generics.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "bindings/arrays/array.h"
#include "bindings/arrays/array_object.h"
#include "bindings/arrays/numpy_api.h"
#include "bindings/interop/foreign.h"
#include "bindings/values/types.h"
#include "bindings/values/values.h"
#include "frontend/frontend.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

using Shape = TypePattern::Shape;

// The object that wp.types.vector(length=Any, ...) makes.
struct ValuePattern {
    TypePattern pattern;
};

nb::handle typing(const char* name) {
    // Kept for good: annotations are read all the time.
    static auto* const known = new nb::dict;
    nb::str key(name);
    if (!known->contains(key)) (*known)[key] = nb::module_::import_("typing").attr(name);
    return nb::handle(PyDict_GetItem(known->ptr(), key.ptr()));
}

bool is_variable(nb::handle object) { return nb::isinstance(object, typing("TypeVar")); }

bool is_callable_annotation(nb::handle object) {
    if (object.is(typing("Callable"))) return true;
    const nb::object abstract = nb::module_::import_("collections.abc").attr("Callable");
    if (object.is(abstract) || object.is(nb::type<frontend::KernelFunction>())) return true;
    return typing("get_origin")(object).is(abstract);  // Callable[[float], float]
}

// An IntEnum or IntFlag: its members are int32 in kernels.
bool is_integer_enumeration(nb::handle object) {
    if (!PyType_Check(object.ptr())) return false;
    if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object.ptr()), &PyLong_Type)) return false;
    return nb::isinstance(object, nb::module_::import_("enum").attr("EnumMeta"));
}

TypePattern variable_pattern(nb::handle variable) {
    TypePattern pattern;
    pattern.variable = nb::cast<std::string>(nb::str(variable.attr("__name__")));
    // wp.Float and its kin may stand for another type at each use.
    const bool is_ours =
        nb::cast<std::string>(nb::str(nb::getattr(variable, "__module__", nb::none()))) == "warp.types";
    // Leaked: another variable must not get its address.
    if (!is_ours) pattern.variable_identity = variable.inc_ref().ptr();
    const auto choose = [&](nb::handle choice) {
        std::optional<TypePattern> read = pattern_from_python(choice);
        if (!read) {
            throw UsageError("TypeVar " + pattern.variable,
                             "is limited to " + describe(choice) + ", which is no type of a kernel's values",
                             ErrorCategory::type);
        }
        pattern.choices.push_back(std::move(*read));
    };
    for (nb::handle choice : nb::borrow<nb::tuple>(variable.attr("__constraints__"))) choose(choice);
    if (const nb::object bound = variable.attr("__bound__"); !bound.is_none()) choose(bound);
    return pattern;
}

// The pattern of a dtype inside a vector, a matrix or an array.
std::optional<TypePattern> element_pattern(nb::handle dtype) {
    if (auto type = dtype_from_python(dtype)) return TypePattern::exactly(*type);
    if (is_type_variable(dtype) || is_value_pattern(dtype)) return pattern_from_python(dtype);
    return std::nullopt;
}

int fixed_extent(nb::handle extent, const char* api) {
    if (extent.is(typing("Any"))) return 0;
    const Py_ssize_t number = PyIndex_Check(extent.ptr()) ? PyNumber_AsSsize_t(extent.ptr(), nullptr) : 0;
    if (number < 1 || number > kMostComponents) {
        throw UsageError(api,
                         "a length must be an int from 1 to " + std::to_string(kMostComponents) +
                             " or typing.Any, got " + nb::repr(extent).c_str(),
                         ErrorCategory::value);
    }
    return static_cast<int>(number);
}

nb::object make_pattern(TypePattern pattern, nb::handle dtype, const char* api) {
    std::optional<TypePattern> scalar = element_pattern(dtype);
    if (!scalar || (scalar->is_exact() && !scalar->type.is_scalar()) || is_value_pattern(dtype)) {
        throw UsageError(
            api,
            "dtype must be a scalar type such as wp.float32, typing.Any or a type variable, got " + describe(dtype),
            ErrorCategory::type);
    }
    pattern.parts = {std::move(*scalar)};
    return nb::cast(ValuePattern{std::move(pattern)});
}

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

// tuple[float, wp.vec3], tuple[float, ...], (float, wp.vec3); empty for other objects.
static std::optional<TypePattern> tuple_pattern(nb::handle annotation) {
    const nb::handle tuple(reinterpret_cast<PyObject*>(&PyTuple_Type));
    const bool is_alias = typing("get_origin")(annotation).is(tuple);
    if (!is_alias && !PyTuple_Check(annotation.ptr())) return std::nullopt;
    const nb::object parts = is_alias ? typing("get_args")(annotation) : nb::borrow(annotation);
    TypePattern pattern;
    pattern.shape = Shape::tuple;
    for (nb::handle part : parts) {
        if (part.is(nb::handle(Py_Ellipsis)) && pattern.parts.size() == 1) {
            pattern.rows = -1;
            break;
        }
        std::optional<TypePattern> read = pattern_from_python(part);
        if (!read) return std::nullopt;
        pattern.parts.push_back(std::move(*read));
    }
    return pattern;
}

bool is_type_variable(nb::handle object) { return object.is(typing("Any")) || is_variable(object); }

bool is_value_pattern(nb::handle object) { return nb::isinstance<ValuePattern>(object); }

std::optional<TypePattern> pattern_from_python(nb::handle annotation) {
    if (annotation.is(typing("Any"))) return TypePattern();
    if (const PyArray* array = array_pointer(annotation)) {
        if (!array->is_annotation) return std::nullopt;
        const Type dtype = array->array.dtype;
        if (!dtype.is_none() && array->array.ndim != kAnyDims)
            return TypePattern::exactly(Type::array(dtype, array->array.ndim));
        std::optional<TypePattern> element =
            dtype.is_none() ? element_pattern(array->dtype) : TypePattern::exactly(dtype);
        if (!element) return std::nullopt;
        TypePattern pattern;
        pattern.shape = Shape::array;
        pattern.ndim = array->array.ndim;
        pattern.parts = {std::move(*element)};
        return pattern;
    }
    if (auto type = annotation_from_python(annotation)) return TypePattern::exactly(*type);
    if (is_value_pattern(annotation)) return nb::cast<ValuePattern&>(annotation).pattern;
    if (is_variable(annotation)) return variable_pattern(annotation);
    if (is_integer_enumeration(annotation)) return TypePattern::exactly(i32_type());
    if (std::optional<TypePattern> tuple = tuple_pattern(annotation)) return tuple;
    if (is_callable_annotation(annotation)) {
        TypePattern pattern;
        pattern.shape = Shape::callable;
        return pattern;
    }
    return std::nullopt;
}

nb::object vector_pattern(nb::handle length, nb::handle dtype, const char* api) {
    TypePattern pattern;
    pattern.shape = Shape::vector;
    pattern.rows = fixed_extent(length, api);
    return make_pattern(std::move(pattern), dtype, api);
}

nb::object matrix_pattern(nb::handle rows, nb::handle cols, nb::handle dtype, const char* api) {
    TypePattern pattern;
    pattern.shape = Shape::matrix;
    pattern.rows = fixed_extent(rows, api);
    pattern.cols = fixed_extent(cols, api);
    return make_pattern(std::move(pattern), dtype, api);
}

nb::object indexed_pattern(nb::handle dtype, int ndim) {
    std::optional<TypePattern> element = element_pattern(dtype);
    if (!element) {
        throw UsageError("indexedarray[]",
                         "expected a type of elements, typing.Any or a type variable, got " + describe(dtype),
                         ErrorCategory::type);
    }
    TypePattern pattern;
    pattern.shape = Shape::indexed;
    pattern.ndim = ndim;
    pattern.parts = {std::move(*element)};
    return nb::cast(ValuePattern{std::move(pattern)});
}

nb::object scalar_pattern(TypePattern::Shape shape, nb::handle dtype, const char* api) {
    TypePattern pattern;
    pattern.shape = shape;
    return make_pattern(std::move(pattern), dtype, api);
}

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

void bind_generics(nb::module_& m) {
    nb::class_<ValuePattern>(m, "ValuePattern",
                             "A family of types, for annotations: wp.types.vector(length=Any, dtype=Any).")
        .def("__repr__", [](const ValuePattern& self) { return python_name(self.pattern); })
        .def(
            "__eq__", [](const ValuePattern& self, const ValuePattern& other) { return self.pattern == other.pattern; },
            nb::is_operator())
        .def("__hash__", [](const ValuePattern& self) { return std::hash<std::string>()(python_name(self.pattern)); });
    m.def("indexed_pattern", &indexed_pattern, nb::arg("dtype"), nb::arg("ndim"),
          "The annotation of an indexedarray of any dtype or any number of dimensions (0).");
}

}  // namespace weft::bindings
