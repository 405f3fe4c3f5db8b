#include "frontend/python_environment.h"

#include <algorithm>
#include <utility>

#include "frontend/objects.h"
#include "support/error.h"

namespace weft::frontend {
namespace {

using sema::Binding;
using Kind = Binding::Kind;

nb::object object_of(const Binding& binding) { return nb::borrow(static_cast<PyObject*>(binding.object.get())); }

// Constants of the kernel as plain Python values, for wp.static.
nb::object python_from_binding(const std::string& name, const Binding& binding) {
    switch (binding.kind) {
        case Kind::constant:
            return constant_to_python({binding.type, binding.numbers});
        case Kind::string:
            return nb::str(binding.text.c_str(), binding.text.size());
        case Kind::none:
            return nb::none();
        case Kind::type:
            return type_to_python(binding.type);
        case Kind::object:
            return object_of(binding);
        case Kind::tuple: {
            nb::list items;
            for (const Binding& element : binding.elements) items.append(python_from_binding(name, element));
            return nb::tuple(items);
        }
        default:
            throw UsageError("static()", "the value of '" + name + "' cannot be used here", ErrorCategory::type);
    }
}

nb::object builtins_of(nb::handle function) {
    nb::object builtins = nb::getattr(function, "__builtins__", nb::none());  // the function's own, from Python 3.10 on
    return PyDict_Check(builtins.ptr()) ? builtins : nb::object(nb::module_::import_("builtins").attr("__dict__"));
}

// A borrowed item, or null; keys are interned names, so no exception of theirs can be lost.
nb::handle find(nb::handle dict, std::string_view name) {
    nb::str key(name.data(), name.size());
    PyObject* found = PyDict_GetItemWithError(dict.ptr(), key.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

// A code object of the text. Closures of one factory ask for the same ones again and again, and Python's compiler takes
// a hundred times what the code itself does.
nb::object code_of(const std::string& text) {
    constexpr Py_ssize_t kMostKept = 4096;
    static auto* const known = new nb::dict;
    nb::str key(text.c_str(), text.size());
    if (PyObject* found = PyDict_GetItemWithError(known->ptr(), key.ptr())) return nb::borrow(found);
    nb::object code = nb::steal(Py_CompileString(key.c_str(), "<string>", Py_eval_input));
    if (!code.is_valid()) throw nb::python_error();
    if (PyDict_Size(known->ptr()) >= kMostKept) known->clear();
    (*known)[key] = code;
    return code;
}

}  // namespace

std::string utf8_text(nb::handle text) {
    Py_ssize_t size = 0;
    if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) return {data, static_cast<std::size_t>(size)};
    PyErr_Clear();
    nb::object escaped = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
    if (!escaped.is_valid()) throw nb::python_error();
    return {PyBytes_AS_STRING(escaped.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(escaped.ptr()))};
}

std::string why_unusable_string(nb::handle text) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!data) {
        PyErr_Clear();
        return "a string that is no valid Unicode";
    }
    const bool has_null = std::string_view(data, static_cast<std::size_t>(size)).find('\0') != std::string_view::npos;
    return has_null ? "a string with a null character in it" : "";
}

std::string exception_text(nb::python_error& error) {
    const std::string kind = utf8_text(error.type().attr("__name__"));
    const std::string message = utf8_text(nb::str(error.value()));
    return message.empty() ? kind : kind + ": " + message;
}

PythonEnvironment::PythonEnvironment(nb::object function, SourcePtr source, std::vector<ExpressionPlace> places)
    : function_(std::move(function)), source_(std::move(source)), places_(std::move(places)) {
    nb::object names = function_.attr("__code__").attr("co_freevars");
    for (nb::handle name : names) closure_names_.push_back(utf8_text(name));
}

PythonEnvironment::~PythonEnvironment() {
    // The last user may be a thread of the compiler; after Python's end there is nothing to give back.
    if (!Py_IsInitialized()) {
        (void)function_.release();
        return;
    }
    nb::gil_scoped_acquire acquire;
    function_.reset();
}

nb::object PythonEnvironment::closure_value(std::size_t index) const {
    nb::object closure = function_.attr("__closure__");
    PyObject* value = PyCell_Get(PyTuple_GET_ITEM(closure.ptr(), static_cast<Py_ssize_t>(index)));
    if (!value) PyErr_Clear();
    return value ? nb::steal(value) : nb::object();
}

Binding PythonEnvironment::lookup(std::string_view name) {
    for (std::size_t i = 0; i < closure_names_.size(); ++i) {
        if (closure_names_[i] != name) continue;
        nb::object value = closure_value(i);
        return value.is_valid() ? binding_from_python(value) : Binding();
    }
    if (nb::handle value = find(function_.attr("__globals__"), name); value.is_valid()) {
        return binding_from_python(nb::borrow(value));
    }
    if (nb::handle value = find(builtins_of(function_), name); value.is_valid()) {
        return binding_from_python(nb::borrow(value));
    }
    return {};
}

Binding PythonEnvironment::attribute(const Binding& object, std::string_view name) {
    if (object.kind != Kind::object) return {};
    try {
        return binding_from_python(nb::getattr(object_of(object), nb::str(name.data(), name.size())));
    } catch (nb::python_error& error) {
        if (error.matches(PyExc_AttributeError)) return {};
        if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C and exit() are no mistake of the kernel
        throw UsageError(std::string(name), "reading the attribute failed: " + exception_text(error));
    }
}

nb::object PythonEnvironment::evaluate_text(const std::string& text, const std::vector<Local>& constants) {
    // Parameters of a lambda and not a namespace of eval(): comprehensions inside the text see them too.
    std::string parameters;
    nb::list arguments;
    const auto add = [&](const std::string& name, nb::object value) {
        parameters += (parameters.empty() ? "" : ", ") + name;
        arguments.append(std::move(value));
    };
    for (const Local& local : constants) add(local.name, python_from_binding(local.name, local.value));
    for (std::size_t i = 0; i < closure_names_.size(); ++i) {
        const auto hides = [&](const Local& local) { return local.name == closure_names_[i]; };
        if (std::any_of(constants.begin(), constants.end(), hides)) continue;
        if (nb::object value = closure_value(i); value.is_valid()) add(closure_names_[i], std::move(value));
    }
    const std::string code = "lambda " + parameters + ": (" + text + "\n)";
    nb::object globals = function_.attr("__globals__");
    nb::object made = nb::steal(PyEval_EvalCode(code_of(code).ptr(), globals.ptr(), globals.ptr()));
    if (!made.is_valid()) throw nb::python_error();
    return made(*arguments);
}

Binding PythonEnvironment::evaluate(int expression_id, const std::vector<Local>& constants) {
    WEFT_CHECK(expression_id >= 0 && expression_id < static_cast<int>(places_.size()), "no expression of this number");
    const std::string text = places_[static_cast<std::size_t>(expression_id)].text(*source_);
    try {
        return binding_from_python(evaluate_text(text, constants));
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_Exception)) throw;
        throw UsageError("static()", "'" + text + "' failed: " + exception_text(error));
    }
}

std::vector<std::string> PythonEnvironment::names() {
    std::vector<std::string> result = closure_names_;
    nb::dict globals = function_.attr("__globals__");
    for (nb::handle key : globals.keys()) result.push_back(utf8_text(nb::str(key)));
    for (const char* name : {"abs", "bool", "float", "int", "len", "max", "min", "pow", "print", "range", "round"}) {
        result.emplace_back(name);
    }
    return result;
}

std::vector<std::string> PythonEnvironment::attribute_names(const Binding& object) {
    std::vector<std::string> result;
    if (object.kind != Kind::object) return result;
    nb::object names = nb::steal(PyObject_Dir(object_of(object).ptr()));
    if (!names.is_valid()) {
        PyErr_Clear();  // a broken __dir__ costs the message its candidates, no more
        return result;
    }
    for (nb::handle name : names) {
        const std::string text = utf8_text(nb::str(name));
        if (!text.starts_with("__")) result.push_back(text);
    }
    return result;
}

}  // namespace weft::frontend
