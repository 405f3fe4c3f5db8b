// The Python classes of types. Those of Weft's own types are made at their first use: `import warp` does not pay for
// the hundred that a program does not use.
#include "bindings/values/types.h"

#include <nanobind/stl/string.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "bindings/python/fastcall.h"
#include "bindings/python/numpy_api.h"
#include "bindings/values/values.h"
#include "support/error.h"
#include "types/objects.h"

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

Type dtype_argument(PyObject* dtype, const char* api) {
    if (!is_given(dtype)) return f32_type();
    // Classes mean the same type for ever. The table owns its keys, so no later object has the address of one.
    struct CachedDtype {
        PyObject* key = nullptr;
        Type type;
    };
    constexpr std::size_t kSize = 64;
    static CachedDtype known[kSize];
    if (!PyType_Check(dtype)) return require_dtype(dtype, api);
    CachedDtype& slot = known[(reinterpret_cast<std::uintptr_t>(dtype) >> 5) % kSize];
    if (slot.key != dtype) {
        Type type = require_dtype(dtype, api);
        Py_INCREF(dtype);
        Py_XDECREF(slot.key);
        slot = {dtype, type};
    }
    return slot.type;
}

int inner_shape(Type dtype, std::int64_t inner[2]) {
    if (dtype.is_matrix()) {
        inner[0] = dtype.rows();
        inner[1] = dtype.cols();
        return 2;
    }
    if (!dtype.is_numeric_aggregate()) return 0;
    inner[0] = dtype.components();
    return 1;
}

bool is_bits_in_numpy(Type dtype) {
    return (dtype.is_scalar() || dtype.is_numeric_aggregate()) && info(dtype.scalar()).is_bits_in_numpy();
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
    if (texture_dims(type) != 0) {  // the module registers its classes
        nb::module_::import_("warp._spatial.texture");
        return classes.at(type);
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

void bind_types(nb::module_& m) {
    add_class(nb::borrow(reinterpret_cast<PyObject*>(&PyFloat_Type)), f32_type(), false);
    add_class(nb::borrow(reinterpret_cast<PyObject*>(&PyLong_Type)), i32_type(), false);
    add_class(nb::borrow(reinterpret_cast<PyObject*>(&PyBool_Type)), bool_type(), false);

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
}

}  // namespace weft::bindings
