#include "bindings/values/patterns.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings/values/array_value.h"
#include "bindings/values/types.h"
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

// wp.tile[float, 4, 8], wp.tile[float]: python/warp/_kernels/tiles.py.
std::optional<TypePattern> tile_pattern(nb::handle annotation) {
    if (PyType_Check(annotation.ptr()) || !nb::hasattr(annotation, "_weft_tile_")) return std::nullopt;
    const nb::tuple parts = nb::cast<nb::tuple>(annotation.attr("_weft_tile_"));
    std::optional<TypePattern> element = element_pattern(parts[0]);
    if (!element) return std::nullopt;
    TypePattern pattern;
    if (!parts[1].is_none()) pattern.extents = nb::cast<std::vector<std::int64_t>>(parts[1]);
    if (element->is_exact() && !pattern.extents.empty())
        return TypePattern::exactly(Type::tile(element->type, std::move(pattern.extents)));
    pattern.shape = Shape::tile;
    pattern.parts = {std::move(*element)};
    return pattern;
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

std::optional<Type> annotation_from_python(nb::handle object) {
    if (auto type = dtype_from_python(object)) return type;
    const PyArray* array = array_pointer(object);
    if (!array || !array->is_annotation || array->array.ndim == kAnyDims) return std::nullopt;
    return Type::array(array->array.dtype, array->array.ndim);
}

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
    if (std::optional<TypePattern> tile = tile_pattern(annotation)) return tile;
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

namespace {

// ---- wp.types.vector() and its like; an open extent of a pattern is 0 ----

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

nb::object scalar_pattern(Shape shape, nb::handle dtype, const char* api) {
    TypePattern pattern;
    pattern.shape = shape;
    return make_pattern(std::move(pattern), dtype, api);
}

Scalar require_scalar(nb::handle dtype, const char* api) {
    const std::optional<Type> type = dtype_from_python(dtype);
    if (!type || !type->is_scalar()) {
        throw UsageError(api,
                         "dtype must be a scalar type such as wp.float32 or wp.int32, got " +
                             (type ? type->python_name() : describe(dtype)),
                         ErrorCategory::type);
    }
    return type->scalar();
}

Scalar require_float(nb::handle dtype, const char* api) {
    const Scalar scalar = require_scalar(dtype, api);
    if (!info(scalar).is_float()) {
        throw UsageError(api, std::string("dtype must be a floating-point type, got ") + info(scalar).python,
                         ErrorCategory::type);
    }
    return scalar;
}

int require_extent(nb::handle value, const char* api, const char* what) {
    const Py_ssize_t extent = PyIndex_Check(value.ptr()) ? PyNumber_AsSsize_t(value.ptr(), nullptr) : 0;
    if (extent < 1 || extent > kMostComponents) {
        throw UsageError(api,
                         std::string(what) + " must be an int from 1 to " + std::to_string(kMostComponents) + ", got " +
                             nb::repr(value).c_str(),
                         ErrorCategory::value);
    }
    return static_cast<int>(extent);
}

nb::object vector_class(nb::handle length, nb::handle dtype) {
    if (is_type_variable(length) || is_type_variable(dtype)) return vector_pattern(length, dtype, "types.vector()");
    return dtype_to_python(
        Type::vector(require_scalar(dtype, "types.vector()"), require_extent(length, "types.vector()", "length")));
}

nb::object matrix_class(nb::handle shape, nb::handle dtype) {
    constexpr const char* api = "types.matrix()";
    if (!(PyTuple_Check(shape.ptr()) || PyList_Check(shape.ptr())) || nb::len(shape) != 2) {
        throw UsageError(
            api, "shape must be a tuple of two ints such as (3, 2), got " + std::string(nb::repr(shape).c_str()),
            ErrorCategory::value);
    }
    if (is_type_variable(shape[0]) || is_type_variable(shape[1]) || is_type_variable(dtype))
        return matrix_pattern(shape[0], shape[1], dtype, api);
    const int rows = require_extent(shape[0], api, "the number of rows");
    const int cols = require_extent(shape[1], api, "the number of columns");
    if (rows > kMostComponents / cols) {
        throw UsageError(api,
                         "a matrix has at most " + std::to_string(kMostComponents) + " components, got shape " +
                             nb::repr(shape).c_str(),
                         ErrorCategory::value);
    }
    return dtype_to_python(Type::matrix(require_scalar(dtype, api), rows, cols));
}

}  // namespace

void bind_patterns(nb::module_& m) {
    nb::class_<ValuePattern>(m, "ValuePattern",
                             "A family of types, for annotations: wp.types.vector(length=Any, dtype=Any).")
        .def("__repr__", [](const ValuePattern& self) { return python_name(self.pattern); })
        .def(
            "__eq__", [](const ValuePattern& self, const ValuePattern& other) { return self.pattern == other.pattern; },
            nb::is_operator())
        .def("__hash__", [](const ValuePattern& self) { return std::hash<std::string>()(python_name(self.pattern)); });
    m.def("indexed_pattern", &indexed_pattern, nb::arg("dtype"), nb::arg("ndim"),
          "The annotation of an indexedarray of any dtype or any number of dimensions (0).");

    const nb::object default_dtype = nb::borrow(reinterpret_cast<PyObject*>(&PyFloat_Type));
    m.def("vector", &vector_class, nb::arg("length").none(), nb::arg("dtype").none() = default_dtype,
          "The class of vectors of `length` components of the scalar type `dtype`: the same one each time.");
    m.def("matrix", &matrix_class, nb::arg("shape").none(), nb::arg("dtype").none() = default_dtype,
          "The class of matrices of `shape` (rows, columns) and scalar type `dtype`: the same one each time.");
    m.def(
        "quaternion",
        [](nb::handle dtype) {
            constexpr const char* api = "types.quaternion()";
            if (is_type_variable(dtype)) return scalar_pattern(Shape::quaternion, dtype, api);
            return dtype_to_python(Type::quaternion(require_float(dtype, api)));
        },
        nb::arg("dtype").none() = default_dtype,
        "The class of quaternions (x, y, z, w; w is the real part) of scalar type `dtype`.");
    m.def(
        "transformation",
        [](nb::handle dtype) {
            constexpr const char* api = "types.transformation()";
            if (is_type_variable(dtype)) return scalar_pattern(Shape::transform, dtype, api);
            return dtype_to_python(Type::transform(require_float(dtype, api)));
        },
        nb::arg("dtype").none() = default_dtype,
        "The class of rigid transforms (position p, rotation q) of scalar type `dtype`.");
}

}  // namespace weft::bindings
