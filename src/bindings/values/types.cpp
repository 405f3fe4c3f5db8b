// The Python classes of types. Those of Weft's own types are made at their first use: `import warp` does not pay for
// the hundred that a program does not use.
#include "bindings/values/types.h"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "bindings/arrays/array.h"
#include "bindings/arrays/numpy_api.h"
#include "bindings/kernels/generics.h"
#include "bindings/values/values.h"
#include "support/error.h"

namespace weft::bindings {
namespace {

struct ClassEntry {
    Type type;
    bool is_value = false;  // one of our classes, whose instances are Values
};

// Class pointers are the keys of the launch path's lookups; every class here is kept alive, so a key never dangles.
struct Registry {
    std::unordered_map<PyTypeObject*, ClassEntry> by_class;
    std::unordered_map<Type, nb::object> by_type;
    nb::object numpy_dtype;  // the class numpy.dtype, once NumPy is loaded
};
Registry& registry() {
    static auto* instance = new Registry;  // leaked on purpose: outlives the interpreter's own objects
    return *instance;
}

void add_class(nb::handle python_class, Type type, bool is_value) {
    registry().by_class[reinterpret_cast<PyTypeObject*>(python_class.ptr())] = {type, is_value};
    python_class.inc_ref();
}

// NumPy's scalar classes become known when NumPy is first seen, which may be after the import of warp.
void learn_numpy() {
    if (registry().numpy_dtype.is_valid()) return;
    nb::object modules = nb::borrow(PyImport_GetModuleDict());
    nb::handle numpy = PyDict_GetItemString(modules.ptr(), "numpy");
    if (!numpy.is_valid() || !nb::hasattr(numpy, "dtype") || !nb::hasattr(numpy, "ulonglong")) return;
    for (const ScalarInfo& scalar : all_scalars()) {
        if (scalar.is_bits_in_numpy()) continue;
        const char* name = scalar.id == Scalar::boolean ? "bool_" : scalar.python;
        add_class(numpy.attr(name), Type::scalar(scalar.id), false);
    }
    // On systems with a C long of 64 bits, these two are classes of their own beside int64 and uint64.
    add_class(numpy.attr("longlong"), i64_type(), false);
    add_class(numpy.attr("ulonglong"), u64_type(), false);
    registry().numpy_dtype = numpy.attr("dtype");
}

// One sentence for help(): the contents of the type and its layout in memory.
std::string class_doc(Type type) {
    const std::string scalar = info(type.scalar()).python;
    switch (type.kind()) {
        case Kind::scalar:
            return "A number of type " + scalar + ".";
        case Kind::vector:
            return "A vector of " + std::to_string(type.rows()) + " " + scalar + " components.";
        case Kind::matrix:
            return "A matrix of " + std::to_string(type.rows()) + " rows and " + std::to_string(type.cols()) +
                   " columns of " + scalar + ", stored row by row.";
        case Kind::quaternion:
            return "A quaternion x, y, z, w of " + scalar + "; w is the real part.";
        case Kind::transform:
            return "A rigid transform of " + scalar + ": translation p and rotation quaternion q.";
        default:
            throw InternalError("no description for the type " + type.python_name());
    }
}

nb::object make_class(Type type) {
    nb::dict members;
    const std::string name = type.python_name();
    members["__slots__"] = nb::tuple();
    members["__doc__"] = class_doc(type);
    members["__module__"] = named_type(name) ? "warp" : "warp.types";
    members["_type_"] = ctype_of(type.scalar());
    if (!info(type.scalar()).is_bits_in_numpy()) {  // numpy.dtype(wp.float32) reads it
        const nb::object dtype = nb::module_::import_("numpy").attr("dtype");
        const nb::object scalar = dtype(info(type.scalar()).numpy);
        members["__numpy_dtype__"] =
            type.is_scalar() ? scalar : dtype(nb::make_tuple(scalar, nb::make_tuple(type.components())));
    }
    if (type.is_scalar()) members["_length_"] = 1;
    if (type.is_numeric_aggregate()) {
        const nb::object scalar = dtype_to_python(type.scalar_type());
        members["dtype"] = scalar;
        members["_wp_scalar_type_"] = scalar;
        members["shape"] = members["_shape_"] =
            type.is_matrix() ? nb::make_tuple(type.rows(), type.cols()) : nb::make_tuple(type.rows());
        members["_length_"] = type.components();
        if (!type.is_matrix()) members["length"] = type.rows();
    }
    return nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type))(nb::str(name.c_str()),
                                                                 nb::make_tuple(value_base_class(type)), members);
}

// ---- wp.types.vector() and friends ----

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

}  // namespace

std::optional<Type> element_of_extents(Scalar scalar, std::span<const std::int64_t> extents) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) {
        if (extent < 1 || extent > kMostComponents / count) return std::nullopt;
        count *= extent;
    }
    const auto at = [&](std::size_t i) { return static_cast<int>(extents[i]); };
    if (extents.size() == 1) return Type::vector(scalar, at(0));
    if (extents.size() == 2) return Type::matrix(scalar, at(0), at(1));
    return std::nullopt;
}

namespace {

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

// The facts of warp.types about a type of numbers; None if `object` is none.
nb::object type_info(nb::handle object) {
    const std::optional<Type> type = dtype_from_python(object);
    if (!type || !(type->is_scalar() || type->is_numeric_aggregate())) return nb::none();
    const ScalarInfo& scalar = info(type->scalar());
    nb::dict result;
    result["kind"] = type->is_scalar()            ? "scalar"
                     : type->is_vector()          ? "vector"
                     : type->is_matrix()          ? "matrix"
                     : type->is(Kind::quaternion) ? "quaternion"
                                                  : "transform";
    result["scalar_kind"] = scalar.is_float() ? "float" : scalar.is_int() ? "int" : "bool";
    result["scalar"] = dtype_to_python(type->scalar_type());
    result["components"] = type->components();
    result["size_bytes"] = type->size_bytes();
    const bool is_bits = scalar.is_bits_in_numpy();
    result["numpy"] = is_bits ? nb::none() : nb::object(nb::str(scalar.numpy));
    result["bits"] = is_bits ? dtype_to_python(Type::scalar(bits_of(scalar.id))) : nb::none();
    return result;
}

Scalar require_float(nb::handle dtype, const char* api) {
    const Scalar scalar = require_scalar(dtype, api);
    if (!info(scalar).is_float()) {
        throw UsageError(api, std::string("dtype must be a floating-point type, got ") + info(scalar).python,
                         ErrorCategory::type);
    }
    return scalar;
}

}  // namespace

nb::object ctype_of(Scalar scalar) {
    const ScalarInfo& s = info(scalar);
    std::string name = std::string(s.is_int() && s.is_signed() ? "c_int" : "c_uint") + std::to_string(s.bits);
    if (scalar == Scalar::boolean) name = "c_bool";
    if (s.is_float() && !s.is_small_float()) name = s.bits == 32 ? "c_float" : "c_double";
    return nb::module_::import_("ctypes").attr(name.c_str());
}

std::optional<Type> dtype_from_python(nb::handle object) {
    if (PyType_Check(object.ptr())) {
        auto* python_class = reinterpret_cast<PyTypeObject*>(object.ptr());
        const auto& classes = registry().by_class;
        if (auto found = classes.find(python_class); found != classes.end()) return found->second.type;
        if (!registry().numpy_dtype.is_valid()) {
            learn_numpy();
            if (auto found = classes.find(python_class); found != classes.end()) return found->second.type;
        }
        return value_type_of_class(python_class);
    }
    learn_numpy();
    if (registry().numpy_dtype.is_valid() && nb::isinstance(object, registry().numpy_dtype)) {
        // Floats that NumPy lacks: the dtypes of ml_dtypes, which JAX uses, are known by their names.
        const auto name = nb::cast<std::string>(nb::str(object.attr("name")));
        if (const auto scalar = numpy::scalar_of_package(name)) return Type::scalar(*scalar);
        return dtype_from_python(object.attr("type"));
    }
    return std::nullopt;
}

std::optional<Type> value_type_of_class(PyTypeObject* python_class) {
    const auto& classes = registry().by_class;
    for (PyTypeObject* c = python_class; c; c = c->tp_base) {
        if (auto found = classes.find(c); found != classes.end()) {
            return found->second.is_value ? std::optional(found->second.type) : std::nullopt;
        }
    }
    return std::nullopt;
}

Type require_dtype(nb::handle object, std::string_view api) {
    if (auto type = dtype_from_python(object)) return *type;
    throw UsageError(
        api, "dtype must be a type such as float, wp.float64, wp.vec3 or numpy.float32, got " + describe(object),
        ErrorCategory::type);
}

nb::object dtype_to_python(Type type) {
    auto& classes = registry().by_type;
    if (auto found = classes.find(type); found != classes.end()) return found->second;
    if (type.is_array()) {
        nb::object array_class = nb::module_::import_("warp._weft").attr("array");
        nb::object element =
            type.element().is_none() ? nb::module_::import_("typing").attr("Any") : dtype_to_python(type.element());
        return array_class(nb::arg("dtype").none() = element, nb::arg("ndim") = type.ndim());
    }
    nb::object made = make_class(type);
    finish_value_class(made);
    add_class(made, type, true);
    classes.emplace(type, made);
    return made;
}

void register_dtype(nb::handle python_class, Type type) {
    add_class(python_class, type, false);
    registry().by_type[type] = nb::borrow(python_class);
}

std::optional<Type> annotation_from_python(nb::handle object) {
    if (auto type = dtype_from_python(object)) return type;
    const PyArray* array = array_pointer(object);
    if (!array || !array->is_annotation || array->array.ndim == kAnyDims) return std::nullopt;
    return Type::array(array->array.dtype, array->array.ndim);
}

void bind_types(nb::module_& m) {
    add_class(nb::borrow(reinterpret_cast<PyObject*>(&PyFloat_Type)), f32_type(), false);
    add_class(nb::borrow(reinterpret_cast<PyObject*>(&PyLong_Type)), i32_type(), false);
    add_class(nb::borrow(reinterpret_cast<PyObject*>(&PyBool_Type)), bool_type(), false);
    bind_values(m);
    bind_generics(m);

    m.def(
        "named_type",
        [](const char* name) -> nb::object {
            const std::optional<Type> type = named_type(name);
            return type ? dtype_to_python(*type) : nb::none();
        },
        nb::arg("name"), "The class that `warp.<name>` is (\"vec3f\", \"float64\"), or None if there is no such type.");
    m.def(
        "named_types",
        [] {
            nb::list names;
            for (const auto& [name, type] : named_types()) names.append(name);
            names.sort();
            return names;
        },
        "All names that named_type() knows.");
    m.def(
        "scalar_types",
        [] {
            nb::list classes;
            for (const ScalarInfo& scalar : all_scalars()) classes.append(dtype_to_python(Type::scalar(scalar.id)));
            return classes;
        },
        "The classes of all scalar types, in the order of Weft's table of them.");
    m.def("type_info", &type_info, nb::arg("dtype").none(),
          "Facts about a type of numbers as a dict, or None for other types.");
    m.def(
        "type_size_bytes", [](nb::handle dtype) { return require_dtype(dtype, "type_size_in_bytes()").size_bytes(); },
        nb::arg("dtype").none(), "Bytes of one value of the type in an array.");
    m.def(
        "type_name", [](nb::handle dtype) { return require_dtype(dtype, "type_name()").python_name(); },
        nb::arg("dtype").none(), "The type as messages write it: \"vec3f\".");

    const nb::object default_dtype = nb::borrow(reinterpret_cast<PyObject*>(&PyFloat_Type));
    m.def("vector", &vector_class, nb::arg("length").none(), nb::arg("dtype").none() = default_dtype,
          "The class of vectors of `length` components of the scalar type `dtype`: the same one each time.");
    m.def("matrix", &matrix_class, nb::arg("shape").none(), nb::arg("dtype").none() = default_dtype,
          "The class of matrices of `shape` (rows, columns) and scalar type `dtype`: the same one each time.");
    m.def(
        "quaternion",
        [](nb::handle dtype) {
            constexpr const char* api = "types.quaternion()";
            if (is_type_variable(dtype)) return scalar_pattern(TypePattern::Shape::quaternion, dtype, api);
            return dtype_to_python(Type::quaternion(require_float(dtype, api)));
        },
        nb::arg("dtype").none() = default_dtype,
        "The class of quaternions (x, y, z, w; w is the real part) of scalar type `dtype`.");
    m.def(
        "transformation",
        [](nb::handle dtype) {
            constexpr const char* api = "types.transformation()";
            if (is_type_variable(dtype)) return scalar_pattern(TypePattern::Shape::transform, dtype, api);
            return dtype_to_python(Type::transform(require_float(dtype, api)));
        },
        nb::arg("dtype").none() = default_dtype,
        "The class of rigid transforms (position p, rotation q) of scalar type `dtype`.");
}

}  // namespace weft::bindings
