#include "frontend/python_environment.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <utility>

#include "frontend/binding.h"
#include "frontend/kernel_function.h"
#include "frontend/objects.h"
#include "frontend/python_ast.h"
#include "frontend/python_text.h"
#include "frontend/watched_globals.h"
#include "sema/walk.h"
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
            if (binding.is_literal && binding.numbers[0].is_float) return nb::float_(binding.numbers[0].f);
            if (binding.is_literal && !binding.type.is_bool()) return nb::int_(binding.numbers[0].i);
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

// The stand-in of a value of the running kernel in wp.static: it has only a length.
nb::object value_of_length(std::int64_t length) {
    static auto* const made = new nb::object([] {
        nb::dict names;
        names["__name__"] = "warp";
        PyObject* done = PyRun_String(
            "class Value:\n"
            "    def __init__(self, length): self._length = length\n"
            "    def __len__(self): return self._length\n"
            "    def __repr__(self): return f'a value of the kernel of length {self._length}'\n",
            Py_file_input, names.ptr(), names.ptr());
        if (!done) throw nb::python_error();
        Py_DECREF(done);
        return nb::object(names["Value"]);
    }());
    return (*made)(length);
}

nb::object python_from_local(const sema::Environment::Local& local) {
    return local.length ? value_of_length(*local.length) : python_from_binding(local.name, local.value);
}

// The identifiers in a Python text, including those within strings.
std::set<std::string, std::less<>> names_in(std::string_view text) {
    const auto belongs = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); };
    std::set<std::string, std::less<>> names;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && belongs(text[end])) ++end;
        if (end > i) names.emplace(text.substr(i, end - i));
        i = end + 1;
    }
    return names;
}

nb::object builtins_of(nb::handle function) {
    nb::object builtins = nb::getattr(function, "__builtins__", nb::none());  // the function's own, from Python 3.10 on
    return PyDict_Check(builtins.ptr()) ? builtins : nb::object(nb::module_::import_("builtins").attr("__dict__"));
}

// A borrowed item, or null. Keys are interned names, so the look-up raises no exception.
nb::handle find(nb::handle dict, std::string_view name) {
    nb::str key(name.data(), name.size());
    PyObject* found = PyDict_GetItemWithError(dict.ptr(), key.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

// The code object of the text, cached: closures of one factory ask for the same ones, and compiling takes a hundred
// times as long as running.
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

// Whether kernels keep the value, even if the name is rebound later.
bool is_constant(const Binding& binding) {
    return binding.kind == Kind::constant || binding.kind == Kind::tuple || binding.kind == Kind::string;
}

}  // namespace

PythonEnvironment::PythonEnvironment(nb::object function, SourcePtr source, std::vector<ExpressionLocation> locations,
                                     ReadMethod read_method)
    : function_(std::move(function)),
      source_(std::move(source)),
      locations_(std::move(locations)),
      read_method_(read_method) {
    nb::object names = function_.attr("__code__").attr("co_freevars");
    for (nb::handle name : names) closure_names_.push_back(utf8_text(name));
}

PythonEnvironment::~PythonEnvironment() {
    // The last owner may be a thread of the compiler; after Python's end nothing can be released.
    if (!Py_IsInitialized()) {
        (void)function_.release();
        for (auto& [module, constants] : constants_of_modules_) (void)constants.first.release();
        return;
    }
    nb::gil_scoped_acquire acquire;
    constants_of_modules_.clear();
    function_.reset();
}

nb::object PythonEnvironment::closure_value(std::size_t index) const {
    nb::object closure = function_.attr("__closure__");
    PyObject* value = PyCell_Get(PyTuple_GET_ITEM(closure.ptr(), static_cast<Py_ssize_t>(index)));
    if (!value) PyErr_Clear();
    return value ? nb::steal(value) : nb::object();
}

void PythonEnvironment::go_on() { ask_for_signals(); }

Binding PythonEnvironment::lookup(std::string_view name) {
    Binding found = find_name(name);
    if (is_constant(found)) constants_.emplace(name);
    return found;
}

Binding PythonEnvironment::find_name(std::string_view name) {
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
    if (!object.object) return {};
    try {
        const nb::object owner = object_of(object);
        Binding found = binding_from_python(nb::getattr(owner, nb::str(name.data(), name.size())));
        if (PyModule_CheckExact(owner.ptr()) && is_constant(found)) {
            auto& [module, names] = constants_of_modules_[owner.ptr()];
            module = owner;
            names.emplace(name);
        }
        return found;
    } catch (nb::python_error& error) {
        if (error.matches(PyExc_AttributeError)) return {};
        if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C and exit() are no error of the kernel
        throw UsageError(std::string(name), "reading the attribute failed: " + exception_text(error));
    }
}

std::shared_ptr<sema::NameWatch> PythonEnvironment::watch() {
    auto names = std::make_shared<WatchedGlobals>();
    bool any = false;
    const auto add = [&](nb::handle dict, const std::string& name, nb::handle value) {
        const nb::str key(name.c_str(), name.size());
        names->add_global(dict, key, value, binding_from_python(nb::borrow(value)));
        any = true;
    };
    const nb::object closure = function_.attr("__closure__"), globals = function_.attr("__globals__");
    for (const std::string& name : constants_) {
        const auto variable = std::ranges::find(closure_names_, name);
        if (variable == closure_names_.end()) {
            if (const nb::handle value = find(globals, name); value.is_valid()) add(globals, name, value);
            continue;
        }
        const auto index = static_cast<std::size_t>(variable - closure_names_.begin());
        const nb::object value = closure_value(index);
        if (!value.is_valid()) continue;
        const nb::handle cell = PyTuple_GET_ITEM(closure.ptr(), static_cast<Py_ssize_t>(index));
        names->add_variable(cell, nb::str(name.c_str(), name.size()), value, binding_from_python(value));
        any = true;
    }
    for (const auto& [_, constants] : constants_of_modules_) {
        const nb::handle dict = PyModule_GetDict(constants.first.ptr());
        for (const std::string& name : constants.second)
            if (const nb::handle value = find(dict, name); value.is_valid()) add(dict, name, value);
    }
    return any ? names : nullptr;
}

Binding PythonEnvironment::method(Type type, std::string_view name) {
    const nb::object owner = type_to_python(type);
    const nb::str wanted(name.data(), name.size());
    for (nb::handle part : nb::tuple(owner.attr("__mro__"))) {
        const nb::object members = part.attr("__dict__");
        if (!nb::cast<bool>(members.attr("__contains__")(wanted))) continue;
        nb::object found = members.attr("__getitem__")(wanted);
        Binding binding{.kind = Kind::function};
        binding.takes_self = true;
        if (Py_TYPE(found.ptr()) == &PyProperty_Type) {
            binding.is_property = true;
            found = found.attr("fget");
        } else if (Py_TYPE(found.ptr()) == &PyStaticMethod_Type) {
            binding.takes_self = false;
            found = found.attr("__func__");
        } else if (Py_TYPE(found.ptr()) == &PyClassMethod_Type) {
            binding.takes_self = false;
            binding.takes_class = true;
            binding.type = type;
            found = found.attr("__func__");
        }
        binding.function = read_method_(found, binding.takes_self);
        if (!binding.function) return {};
        return binding;
    }
    return {};
}

// python/warp/_kernels/data_classes.py sets `_construction`.
std::optional<sema::Construction> PythonEnvironment::construction(Type type) {
    const nb::object owner = type_to_python(type);
    const nb::object rules = nb::getattr(owner, "_construction", nb::none());
    if (rules.is_none()) return std::nullopt;
    sema::Construction result;
    for (nb::handle parameter : rules.attr("parameters")) {
        const auto flag = [&](const char* name) { return nb::cast<bool>(parameter.attr(name)); };
        result.parameters.push_back({nb::cast<std::string>(parameter.attr("name")), flag("keyword_only"),
                                     flag("required"), flag("has_factory"), flag("is_init_only")});
    }
    for (nb::handle name : rules.attr("compared")) result.compared.push_back(nb::cast<std::string>(name));
    result.has_equality = nb::cast<bool>(rules.attr("has_equality"));
    result.is_frozen = nb::cast<bool>(rules.attr("is_frozen"));
    result.has_post_init = nb::hasattr(owner, "__post_init__");
    return result;
}

std::string PythonEnvironment::module_with_operator(Type type, std::string_view name) {
    const std::string module = nb::str(type_to_python(type).attr("__module__")).c_str();
    const nb::object loaded = nb::module_::import_("sys").attr("modules").attr("get")(module.c_str());
    if (loaded.is_none()) return {};
    const nb::object found = nb::getattr(loaded, nb::str(name.data(), name.size()), nb::none());
    return nb::isinstance<KernelFunction>(found) && !nb::cast<KernelFunction&>(found).is_builtin() ? module
                                                                                                   : std::string();
}

bool PythonEnvironment::is_derived(Type type, Type base) {
    return PyObject_IsSubclass(type_to_python(type).ptr(), type_to_python(base).ptr()) == 1;
}

nb::object PythonEnvironment::evaluate_text(const std::string& text, const std::vector<Local>& constants) {
    // The constants are parameters of a lambda and not a namespace of eval(), so that comprehensions inside the text
    // see them.
    std::string parameters;
    nb::list arguments;
    const auto add = [&](const std::string& name, nb::object value) {
        parameters += (parameters.empty() ? "" : ", ") + name;
        arguments.append(std::move(value));
    };
    for (const Local& local : constants) add(local.name, python_from_local(local));
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
    WEFT_CHECK(expression_id >= 0 && expression_id < static_cast<int>(locations_.size()),
               "no expression of this number");
    const std::string text = locations_[static_cast<std::size_t>(expression_id)].text(*source_);
    const std::set<std::string, std::less<>> names = names_in(text);
    std::vector<Local> used;
    std::string key = std::to_string(expression_id);
    for (const Local& local : constants) {
        if (!names.contains(local.name)) continue;
        used.push_back(local);
        key += '|' + local.name + '=' + utf8_text(nb::repr(python_from_local(local)));
    }
    if (const auto known = evaluated_.find(key); known != evaluated_.end()) return known->second;
    try {
        Binding found = binding_from_python(evaluate_text(text, used));
        evaluated_.emplace(std::move(key), found);
        return found;
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_Exception)) throw;
        throw UsageError("static()", "'" + text + "' failed: " + exception_text(error));
    }
}

void PythonEnvironment::evaluate_statics(const syntax::Function& tree) {
    std::set<std::string> locals = sema::rebound_names(tree.body);
    for (const syntax::Parameter& parameter : tree.parameters) locals.insert(parameter.name);
    const auto is_static = [&](const syntax::Expression& callee) {
        const auto* attribute = std::get_if<syntax::Attribute>(&callee.node);
        const auto* name = std::get_if<syntax::Name>(attribute ? &attribute->object->node : &callee.node);
        if (!name || locals.contains(name->id)) return false;
        Binding found = lookup(name->id);
        if (attribute) found = this->attribute(found, attribute->name);
        return found.kind == Kind::builtin && found.text == "static";
    };
    const auto ignore = [](const syntax::Statement&) {};
    const std::function<void(const syntax::Expression&)> evaluate_static = [&](const syntax::Expression& e) {
        if (const auto* lambda = std::get_if<syntax::Lambda>(&e.node))
            sema::walk(lambda->function->body, ignore, evaluate_static);
        const auto* call = std::get_if<syntax::Call>(&e.node);
        if (!call || call->arguments.size() != 1 || !is_static(*call->function)) return;
        const int id = call->arguments[0]->id;
        for (const std::string& name : names_in(locations_[static_cast<std::size_t>(id)].text(*source_)))
            if (locals.contains(name)) return;
        try {
            evaluate(id, {});
        } catch (const UsageError&) {
            // The name may be defined later: the compiler evaluates it again, and reports it then.
        }
    };
    sema::walk(tree.body, ignore, evaluate_static);
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
    if (!object.object) return result;
    nb::object names = nb::steal(PyObject_Dir(object_of(object).ptr()));
    if (!names.is_valid()) {
        PyErr_Clear();  // without candidates if __dir__ is broken
        return result;
    }
    for (nb::handle name : names) {
        const std::string text = utf8_text(nb::str(name));
        if (!text.starts_with("__")) result.push_back(text);
    }
    return result;
}

}  // namespace weft::frontend
