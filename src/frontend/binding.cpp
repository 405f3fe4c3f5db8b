#include "frontend/binding.h"

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/kernel_function.h"
#include "frontend/objects.h"
#include "frontend/python_text.h"
#include "support/error.h"

namespace weft::frontend {
namespace {

using sema::Binding;
using Kind = Binding::Kind;

// Python's own functions with an entry of the same name in the builtin table.
constexpr std::array<std::string_view, 10> kPythonBuiltins = {"abs",   "len", "max",   "min", "pow",
                                                              "print", "sum", "round", "any", "all"};

// Functions of Python's math that are entries of the builtin table.
constexpr std::array<std::string_view, 26> kMathFunctions = {
    "acos",  "asin",  "atan",     "atan2", "ceil",  "cos",  "cosh", "degrees", "erf", "erfc", "exp",  "fabs", "floor",
    "isnan", "isinf", "isfinite", "log",   "log10", "log2", "pow",  "radians", "sin", "sinh", "sqrt", "tan",  "tanh"};

Binding unsupported(std::string what) {
    Binding binding{.kind = Kind::unsupported};
    binding.text = std::move(what);
    return binding;
}

Binding named_builtin(std::string name) {
    Binding binding{.kind = Kind::builtin};
    binding.text = std::move(name);
    return binding;
}

Binding constant(Type type, std::vector<Number> numbers, bool is_literal) {
    Binding binding{.kind = Kind::constant};
    binding.type = type;
    binding.numbers = std::move(numbers);
    binding.is_literal = is_literal;
    return binding;
}

Binding integer(nb::handle object) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    if (!overflow) {
        const bool small =
            value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
        return constant(small ? i32_type() : i64_type(), {Number::integer(value)}, true);
    }
    const unsigned long long large = PyLong_AsUnsignedLongLong(object.ptr());
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return unsupported("an int that does not fit into 64 bits");
    }
    return constant(u64_type(), {Number::integer(static_cast<std::int64_t>(large))}, true);
}

// Kept by bindings of kind object. Sema may release it on a thread that does not hold the GIL.
std::shared_ptr<void> hold(nb::handle object) {
    object.inc_ref();
    return {object.ptr(), [](void* held) {
                if (!Py_IsInitialized()) return;
                nb::gil_scoped_acquire acquire;
                Py_DECREF(static_cast<PyObject*>(held));
            }};
}

std::string text_attribute(nb::handle object, const char* name) {
    nb::object value = nb::getattr(object, name, nb::none());
    return value.is_none() ? std::string() : utf8_text(nb::str(value));
}

// Functions written in C: Python's builtins, and those of modules like math.
Binding c_function(nb::handle object) {
    const std::string module = text_attribute(object, "__module__"), name = text_attribute(object, "__name__");
    if (module == "builtins") {
        for (std::string_view known : kPythonBuiltins) {
            if (known == name) return named_builtin(name);
        }
        return unsupported("the Python function '" + name + "'");
    }
    // In kernels these names make arrays and values; in Python wp.types.vector(...) makes a type.
    if (module.starts_with("warp")) {
        for (std::string_view known : {"zeros", "copy", "vector", "matrix", "quaternion", "transformation"})
            if (known == name) return named_builtin(name);
    }
    // Kernels have math.sqrt and the like as builtins.
    if (module == "math") {
        for (std::string_view known : kMathFunctions)
            if (known == name) return named_builtin(name == "fabs" ? "abs" : name);
    }
    if (module == "math") return unsupported("the Python function math." + name);
    return unsupported("the Python function '" + (module.empty() ? name : module + "." + name) + "'");
}

Binding class_object(nb::handle object) {
    if (auto type = type_from_python(object)) {
        Binding binding{.kind = Kind::type};
        binding.type = *type;
        return binding;
    }
    if (object.ptr() == reinterpret_cast<PyObject*>(&PyType_Type)) return named_builtin("type");
    if (object.ptr() == reinterpret_cast<PyObject*>(&PyRange_Type)) return named_builtin("range");
    if (object.ptr() == reinterpret_cast<PyObject*>(&PySlice_Type)) return named_builtin("slice");
    if (object.ptr() == reinterpret_cast<PyObject*>(&PyReversed_Type)) return named_builtin("reversed");
    if (std::string text = text_attribute(object, "_not_there"); !text.empty()) return unsupported(std::move(text));
    const std::string module = text_attribute(object, "__module__"), name = text_attribute(object, "__name__");
    if (module == "warp" && name == "array")
        return named_builtin(name);  // in kernels: an array over memory at an address
    if (module == "builtins" && (name == "enumerate" || name == "zip")) return named_builtin(name);
    // wp.tile is the type of an annotation and a function of kernels.
    if (std::string builtin = text_attribute(object, "_weft_builtin_"); !builtin.empty()) return named_builtin(builtin);
    Binding binding{.kind = Kind::object};
    if (module == "builtins" && category_named(name)) {
        binding.kind = Kind::exception;
        binding.text = name;
        return binding;
    }
    binding.text = "the class '" + name + "'";
    binding.object = hold(object);
    return binding;
}

constexpr int kMostNesting = 16;  // of tuples in tuples; also stops at a list that contains itself

Binding from_python(nb::handle object, int depth);

Binding sequence(nb::handle object, int depth) {
    if (depth == kMostNesting) return unsupported("a deeply nested list or tuple");
    Binding binding{.kind = Kind::tuple};
    nb::tuple items = nb::steal<nb::tuple>(PySequence_Tuple(object.ptr()));
    for (nb::handle item : items) binding.elements.push_back(from_python(item, depth + 1));
    return binding;
}

// A struct instance as a constant with its present fields. One that holds arrays is an object with attributes.
Binding struct_instance(nb::handle object, Type type, int depth) {
    Binding binding{.kind = Kind::tuple};
    binding.type = type;
    for (const Type::Field& field : type.fields()) {
        binding.elements.push_back(from_python(nb::getattr(object, field.name.c_str()), depth + 1));
        const Kind kind = binding.elements.back().kind;
        if (kind == Kind::constant || kind == Kind::tuple) continue;
        Binding whole{.kind = Kind::object};
        whole.text = "an instance of " + type.struct_name() + " whose field '" + field.name + "' is no constant";
        whole.object = hold(object);
        return whole;
    }
    return binding;
}

Binding from_python(nb::handle object, int depth) {
    PyObject* raw = object.ptr();
    if (object.is_none()) return Binding{.kind = Kind::none};
    if (PyBool_Check(raw)) return constant(bool_type(), {Number::integer(raw == Py_True)}, true);
    if (PyLong_Check(raw)) return integer(object);  // also members of an IntEnum
    if (PyFloat_CheckExact(raw)) return constant(f32_type(), {Number::real(PyFloat_AS_DOUBLE(raw))}, true);
    if (auto typed = typed_constant(object)) return constant(typed->type, std::move(typed->numbers), false);
    if (PyFloat_Check(raw)) return constant(f32_type(), {Number::real(PyFloat_AS_DOUBLE(raw))}, true);
    if (PyUnicode_Check(raw)) {
        if (std::string why = why_unusable_string(object); !why.empty()) return unsupported(std::move(why));
        Binding binding{.kind = Kind::string};
        binding.text = utf8_text(object);
        return binding;
    }
    if (PyType_Check(raw)) return class_object(object);
    if (nb::isinstance<KernelFunction>(object)) {
        auto& function = nb::cast<KernelFunction&>(object);
        Binding binding = function.binding();
        if (!function.is_builtin()) binding.object = hold(object);  // for attributes that the program set
        return binding;
    }
    if (PyFunction_Check(raw)) {
        if (std::string text = text_attribute(object, "_not_there"); !text.empty()) return unsupported(std::move(text));
        const std::string module = text_attribute(object, "__module__"), name = text_attribute(object, "__name__");
        for (std::string_view library : {"numpy", "scipy", "random", "statistics"})
            if (module.substr(0, module.find('.')) == library)
                return unsupported("the Python function '" + module + "." + name + "'");
        return unsupported("the Python function '" + name + "' (kernels call functions made with @wp.func)");
    }
    if (PyCFunction_Check(raw)) return c_function(object);
    if (PyTuple_Check(raw) || PyList_Check(raw)) return sequence(object, depth);
    if (const std::optional<Type> type = struct_type(object)) return struct_instance(object, *type, depth);
    if (PyDict_Check(raw)) {  // Environment::evaluate reads its items
        Binding binding{.kind = Kind::object};
        binding.text = "a dict";
        binding.object = hold(object);
        return binding;
    }
    if (PyRange_Check(raw)) {
        constexpr Py_ssize_t kMostOfRange = 4096;
        const Py_ssize_t length = PyObject_Size(raw);
        if (length < 0) PyErr_Clear();
        if (length < 0 || length > kMostOfRange) return unsupported("a range() of more than 4096 numbers");
        return sequence(object, depth);
    }
    if (PyAnySet_Check(raw)) return unsupported("a set");
    if (PyBytes_Check(raw)) return unsupported("bytes");
    if (PyComplex_Check(raw)) return unsupported("a complex number");
    if (auto type = type_from_python(object)) {  // numpy.dtype("float32")
        Binding binding{.kind = Kind::type};
        binding.type = *type;
        return binding;
    }
    // wp.array(dtype=float), wp.array[float]: annotations of variables.
    if (auto pattern = annotation_pattern(object);
        pattern && pattern->is_exact() && (pattern->type.is_array() || pattern->type.is_tile())) {
        Binding binding{.kind = Kind::type};
        binding.type = pattern->type;
        return binding;
    }
    if (std::string why = why_unusable(object); !why.empty()) return unsupported(std::move(why));
    if (PyCallable_Check(raw)) {
        const std::string name = text_attribute(object, "__name__");
        // An object of a class with __call__ has no name of its own; its attributes can be read.
        if (!name.empty()) return unsupported("the Python function '" + name + "'");
    }
    Binding binding{.kind = Kind::object};
    binding.text = PyModule_Check(raw) ? "the module '" + text_attribute(object, "__name__") + "'"
                                       : "an object of the class '" + text_attribute(object.type(), "__name__") + "'";
    binding.object = hold(object);
    return binding;
}

}  // namespace

Binding binding_from_python(nb::handle object) { return from_python(object, 0); }

}  // namespace weft::frontend
