#include "frontend/frontend.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontend/binding.h"
#include "frontend/objects.h"
#include "frontend/python_ast.h"
#include "frontend/python_environment.h"
#include "frontend/python_text.h"
#include "frontend/source_text.h"
#include "frontend/tree_reader.h"
#include "support/error.h"
#include "support/float_environment.h"

namespace weft::frontend {
namespace {

// Module, qualified name and first line: the same in every process. Functions that one `def` made more than once
// (closures) are numbered in the order in which they are read.
std::string make_key(nb::handle function) {
    std::string key = std::string(nb::str(nb::getattr(function, "__module__", nb::str("?"))).c_str()) + ":" +
                      nb::str(function.attr("__qualname__")).c_str() + ":" +
                      nb::str(nb::object(function.attr("__code__").attr("co_firstlineno"))).c_str();
    static auto* seen = new std::map<std::string, int>;
    const int count = ++(*seen)[key];
    return count == 1 ? key : key + "#" + std::to_string(count);
}

// `from __future__ import annotations` and quoted annotations leave text, which is evaluated in the function's globals.
nb::object resolve(nb::handle annotation, PythonEnvironment& environment) {
    if (!PyUnicode_Check(annotation.ptr())) return nb::borrow(annotation);
    return environment.evaluate_text(nb::str(annotation).c_str());
}

nb::object evaluated(nb::handle annotation, const std::string& what, Span span, PythonEnvironment& environment) {
    try {
        return resolve(annotation, environment);
    } catch (nb::python_error& error) {
        throw CompileError(span, "the annotation of " + what + " cannot be evaluated: " + exception_text(error), {},
                           ErrorCategory::name);
    }
}

[[noreturn]] void throw_no_type(nb::handle found, const std::string& what, Span span) {
    if (nb::hasattr(found, "_not_there")) {
        const std::string text = nb::str(found.attr("_not_there")).c_str();
        throw CompileError(span, "the annotation of " + what + " is a name that waits. " + text);
    }
    throw CompileError(
        span, "the annotation of " + what + " is " + describe_object(found) + ", which is no type of a kernel's values",
        {{Note::Kind::help, "use float, int, bool, wp.float64, wp.vec3, wp.array[float] and the like", {}}});
}

TypePattern read_annotation(const syntax::Parameter& parameter, nb::handle annotation, PythonEnvironment& environment,
                            std::set<std::string>& references) {
    const std::string what = "parameter '" + parameter.name + "'";
    nb::object resolved = evaluated(annotation, what, parameter.span, environment);
    if (nb::hasattr(resolved, "_is_reference")) {
        references.insert(parameter.name);
        resolved = resolved.attr("dtype");
    }
    if (auto pattern = annotation_pattern(resolved)) return *pattern;
    throw_no_type(resolved, what, parameter.span);
}

// tuple[float, int] is the type of several values; empty if a part of the annotation is not exact.
std::optional<Type> result_type(nb::handle annotation, const std::string& what, Span span,
                                PythonEnvironment& environment) {
    nb::object resolved = evaluated(annotation, what, span, environment);
    if (resolved.is_none()) return Type::none();
    const nb::handle tuple(reinterpret_cast<PyObject*>(&PyTuple_Type));
    if (resolved.is(tuple)) return {};
    nb::object typing = nb::module_::import_("typing");
    const bool is_alias = typing.attr("get_origin")(resolved).is(tuple);
    if (!is_alias && !PyTuple_Check(resolved.ptr())) {
        const std::optional<TypePattern> pattern = annotation_pattern(resolved);
        if (!pattern) throw_no_type(resolved, what, span);
        return pattern->is_exact() ? std::optional(pattern->type) : std::nullopt;
    }
    nb::object parts = is_alias ? nb::object(typing.attr("get_args")(resolved)) : resolved;
    std::vector<Type> elements;
    for (nb::handle part : parts) {
        if (part.is(nb::handle(Py_Ellipsis))) return {};
        std::optional<Type> element = result_type(part, what, span, environment);
        if (!element) return {};
        elements.push_back(*element);
    }
    return Type::tuple(std::move(elements));
}

nb::object annotations_of(const syntax::Function& tree, nb::handle function) {
    try {
        return function.attr("__annotations__");
    } catch (nb::python_error& error) {  // from Python 3.14 on they are evaluated here
        throw CompileError(tree.span,
                           "the annotations of '" + tree.name + "' cannot be evaluated: " + exception_text(error), {},
                           ErrorCategory::name);
    }
}

// The type behind "->"; empty if there is none, or one that is not exact.
std::optional<Type> read_result(const syntax::Function& tree, nb::handle annotations, PythonEnvironment& environment) {
    nb::handle annotation = PyDict_GetItemString(annotations.ptr(), "return");
    if (!annotation.is_valid() || !tree.result_span) return {};
    return result_type(annotation, "the result of '" + tree.name + "'", tree.result_span, environment);
}

std::vector<TypePattern> read_annotations(const syntax::Function& tree, nb::handle annotations,
                                          PythonEnvironment& environment, std::set<std::string>& references) {
    std::vector<TypePattern> patterns(tree.parameters.size());
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        const syntax::Parameter& parameter = tree.parameters[i];
        nb::handle annotation = PyDict_GetItemString(annotations.ptr(), parameter.name.c_str());
        if (annotation.is_valid()) patterns[i] = read_annotation(parameter, annotation, environment, references);
    }
    return patterns;
}

// Aligned with the parameters: positional defaults belong to the last positional parameters.
std::vector<sema::Binding> read_defaults(const syntax::Function& tree, nb::handle function) {
    const nb::object values = function.attr("__defaults__"), by_keyword = function.attr("__kwdefaults__");
    if (values.is_none() && by_keyword.is_none()) return {};
    std::vector<sema::Binding> defaults(tree.parameters.size());
    const auto is_keyword = [](const syntax::Parameter& p) { return p.keyword_only; };
    const auto positional = static_cast<std::size_t>(
        std::find_if(tree.parameters.begin(), tree.parameters.end(), is_keyword) - tree.parameters.begin());
    const std::size_t count = values.is_none() ? 0 : nb::len(values);
    for (std::size_t i = 0; i < count; ++i)
        defaults[positional - count + i] = binding_from_python(nb::object(values[i]));
    for (std::size_t i = positional; i < defaults.size(); ++i) {
        nb::str name(tree.parameters[i].name.c_str());
        if (!by_keyword.is_none() && PyDict_Contains(by_keyword.ptr(), name.ptr()) == 1)
            defaults[i] = binding_from_python(nb::object(by_keyword[name]));
    }
    return defaults;
}

// "make__locals__scale" for a function in a function: an identifier that is unique in its module.
nb::object key_of(nb::handle function) {
    return function.attr("__qualname__").attr("replace")(".", "__").attr("replace")("<", "").attr("replace")(">", "");
}

nb::dict input_types(nb::handle function) {
    const nb::object code = function.attr("__code__"), annotations = function.attr("__annotations__");
    nb::dict types;
    const Py_ssize_t count = nb::cast<Py_ssize_t>(code.attr("co_argcount") + code.attr("co_kwonlyargcount"));
    for (Py_ssize_t i = 0; i < count; ++i) {
        const nb::object name = code.attr("co_varnames")[i];
        types[name] = annotations.attr("get")(name, nb::module_::import_("typing").attr("Any"));
    }
    return types;
}

nb::dict parameter_defaults(nb::handle function) {
    const nb::object code = function.attr("__code__"), values = function.attr("__defaults__");
    nb::dict defaults;
    const Py_ssize_t count = values.is_none() ? 0 : static_cast<Py_ssize_t>(nb::len(values));
    const Py_ssize_t first = nb::cast<Py_ssize_t>(code.attr("co_argcount")) - count;
    for (Py_ssize_t i = 0; i < count; ++i) defaults[code.attr("co_varnames")[first + i]] = values[i];
    if (const nb::object own = function.attr("__kwdefaults__"); !own.is_none())
        defaults.update(nb::borrow<nb::dict>(own));
    return defaults;
}

PyType_Slot kBuiltinSlots[] = {{Py_tp_call, reinterpret_cast<void*>(&call_builtin)}, {0, nullptr}};

}  // namespace

namespace {

std::uint64_t redefinitions = 0;

// Pauses Python's garbage collector while a long function is read: it would scan the growing tree many times, half of
// the parser's time. Short ones are read without a pause, after which Python would scan all objects of the program.
class PausedCollector {
public:
    explicit PausedCollector(nb::handle code) {
        constexpr std::size_t kLong = 8192;  // bytes of the table of lines: some 600 lines
        was_enabled_ = nb::len(nb::object(code.attr("co_linetable"))) > kLong && PyGC_Disable() != 0;
    }
    ~PausedCollector() {
        if (was_enabled_) PyGC_Enable();
    }
    PausedCollector(const PausedCollector&) = delete;

private:
    bool was_enabled_ = false;
};

// Shared by all functions of one `def`: closures of a factory have one code object, hence one tree.
struct SharedTree {
    nb::object lives;  // a weak reference; erases the entry when the code object dies
    SourcePtr source;
    ReadTree read;
};

std::shared_ptr<const sema::FunctionSource> read_method(nb::handle object, bool takes_self);  // a ReadMethod

// Whether the expression means wp.adjoint, under any name.
bool is_adjoint(PythonEnvironment& environment, const syntax::Expression& expression) {
    sema::Binding binding;
    if (const auto* name = std::get_if<syntax::Name>(&expression.node)) {
        binding = environment.lookup(name->id);
    } else if (const auto* attribute = std::get_if<syntax::Attribute>(&expression.node)) {
        const auto* module = std::get_if<syntax::Name>(&attribute->object->node);
        if (module && attribute->name == "adjoint")
            binding = environment.attribute(environment.lookup(module->id), attribute->name);
    }
    return binding.kind == sema::Binding::Kind::builtin && binding.text == "adjoint";
}

const SharedTree& shared_tree(nb::handle function, bool is_gradient) {
    static auto* const trees = new std::unordered_map<PyObject*, SharedTree>;
    const nb::object code = function.attr("__code__");
    PyObject* const key = code.ptr();
    if (const auto found = trees->find(key); found != trees->end()) return found->second;
    const PausedCollector paused(code);
    const ParsedFunction parsed = parse_function(function);
    ask_for_signals();
    PythonEnvironment names(nb::borrow(function), parsed.source, {}, &read_method);
    IsAdjoint finds_adjoint;
    if (is_gradient) finds_adjoint = [&](const syntax::Expression& e) { return is_adjoint(names, e); };
    SharedTree made{{}, parsed.source, read_tree(parsed, std::move(finds_adjoint))};
    const nb::object forget = nb::cpp_function([key](nb::handle) { trees->erase(key); });
    made.lives = nb::steal(PyWeakref_NewRef(key, forget.ptr()));
    if (!made.lives.is_valid()) throw nb::python_error();
    return trees->insert_or_assign(key, std::move(made)).first->second;
}

}  // namespace

std::uint64_t function_redefinitions() { return redefinitions; }

static bool names(nb::handle function, const char* name) {
    const nb::object code = nb::getattr(function, "__code__", nb::none());
    return !code.is_none() && PySequence_Contains(code.attr("co_names").ptr(), nb::str(name).ptr()) == 1;
}

std::shared_ptr<const sema::FunctionSource> read_when_declared(nb::handle function) {
    // A function that may be a gradient is read later, when that is known.
    if (!names(function, "static") || names(function, "adjoint")) return nullptr;
    try {
        return read_function(function);
    } catch (const CompileError&) {
        return nullptr;  // the first launch reads again and reports the mistake
    } catch (const UsageError&) {
        return nullptr;
    }
}

std::shared_ptr<const sema::FunctionSource> read_function(nb::handle function, bool is_gradient) {
    const DefaultFloats floats;
    if (!PyFunction_Check(function.ptr())) {
        throw UsageError("kernel(), func()", "expected a Python function, got " + describe_object(function),
                         ErrorCategory::type);
    }
    const SharedTree& shared = shared_tree(function, is_gradient);
    const SourcePtr source = shared.source;
    ReadTree read = shared.read;
    keep_for_error(source);
    auto environment =
        std::make_shared<PythonEnvironment>(nb::borrow(function), source, std::move(read.locations), &read_method);
    auto result = std::make_shared<sema::FunctionSource>();
    nb::object annotations = annotations_of(*read.function, function);
    result->annotations = read_annotations(*read.function, annotations, *environment, result->references);
    result->result = read_result(*read.function, annotations, *environment);
    result->defaults = read_defaults(*read.function, function);
    if (names(function, "static")) environment->evaluate_statics(*read.function);
    result->tree = std::move(read.function);
    result->environment = std::move(environment);
    result->key = make_key(function);
    return result;
}

namespace {

// The source of a method, whose first parameter is passed by reference; read once. `is_ours`: it is a PyFunction.
std::shared_ptr<const sema::FunctionSource> read_with_self(nb::handle function, bool is_ours) {
    struct CachedMethod {
        nb::object lives;  // a weak reference; erases the entry when the function dies
        std::shared_ptr<const sema::FunctionSource> source;
    };
    static auto* const methods = new std::unordered_map<PyObject*, CachedMethod>;
    PyObject* const key = function.ptr();
    if (const auto found = methods->find(key); found != methods->end()) return found->second.source;
    auto read = std::make_shared<sema::FunctionSource>(is_ours ? *nb::cast<PyFunction&>(function).source()
                                                               : *read_function(function));
    if (!read->tree->parameters.empty()) read->references.insert(read->tree->parameters[0].name);
    const nb::object forget = nb::cpp_function([key](nb::handle) { methods->erase(key); });
    nb::object lives = nb::steal(PyWeakref_NewRef(key, forget.ptr()));
    if (!lives.is_valid()) throw nb::python_error();
    return methods->insert_or_assign(key, CachedMethod{std::move(lives), std::move(read)}).first->second.source;
}

std::shared_ptr<const sema::FunctionSource> read_method(nb::handle object, bool takes_self) {
    const bool is_ours = nb::isinstance<PyFunction>(object);
    if (!PyFunction_Check(object.ptr()) && !is_ours) return nullptr;
    if (takes_self) return read_with_self(object, is_ours);
    return is_ours ? nb::cast<PyFunction&>(object).source() : read_function(object);
}

}  // namespace

sema::Binding PyFunction::binding() {
    sema::Binding binding{.kind = sema::Binding::Kind::function};
    binding.function = source();
    return binding;
}

sema::Binding Builtin::binding() {
    sema::Binding binding{.kind = sema::Binding::Kind::builtin};
    binding.text = name;
    return binding;
}

std::shared_ptr<const sema::FunctionSource> PyFunction::source() {
    // An overload may have got a gradient since then.
    if (source_ && (overloads.empty() || read_at_ == redefinitions)) return source_;
    read_at_ = redefinitions;
    auto read = std::make_shared<sema::FunctionSource>(*own_source());
    // Newest first; one with the parameter types of a newer one has been replaced by it.
    for (auto older = overloads.rbegin(); older != overloads.rend(); ++older) {
        auto candidate = nb::cast<PyFunction&>(*older).own_source();
        const auto replaces = [&](const sema::FunctionSource& newer) {
            return newer.annotations == candidate->annotations;
        };
        bool replaced = replaces(*read);
        for (const auto& newer : read->overloads) replaced |= replaces(*newer);
        if (!replaced) read->overloads.push_back(std::move(candidate));
    }
    source_ = std::move(read);
    return source_;
}

std::shared_ptr<const sema::FunctionSource> PyFunction::own_source() {
    if (own_source_) return own_source_;
    if (!early_) early_ = read_function(function, is_gradient);
    auto read = std::make_shared<sema::FunctionSource>(*early_);
    const auto snippet = [&](const nb::object& text, const char* which) {
        return text.is_none() ? nullptr : snippet_source(which + read->tree->name, nb::cast<std::string>(text));
    };
    read->native = snippet(native.forward, "");
    read->native_adjoint = snippet(native.adjoint, "adj_");
    read->native_replay = snippet(native.replay, "replay_");
    if (!gradient_.is_none()) read->gradient = nb::cast<PyFunction&>(gradient_).source();
    if (!replay_.is_none()) read->replay = nb::cast<PyFunction&>(replay_).source();
    own_source_ = std::move(read);
    return own_source_;
}

void PyFunction::read_early() { early_ = read_when_declared(function); }

void PyFunction::set_gradient(nb::object function) {
    nb::cast<PyFunction&>(function).is_gradient = true;
    gradient_ = std::move(function);
    source_ = own_source_ = nullptr;
    ++redefinitions;
}

void PyFunction::set_replay(nb::object function) {
    replay_ = std::move(function);
    source_ = own_source_ = nullptr;
    ++redefinitions;
}

void bind_frontend(nb::module_& m) {
    bind_windows(m);
    m.def(
        "function_redefined", [] { ++redefinitions; },
        "Says that a @wp.func replaced an earlier one of the same name: compiled kernels look again.");
    m.def("keep_lines", &keep_lines, nb::arg("function"),
          "Keeps the text of the file with a function: the file may be gone when the function is compiled.");
    nb::class_<KernelFunction>(m, "Function", nb::dynamic_attr(), nb::is_weak_referenceable(),
                               "A function that kernels can call: made by @wp.func, or built in.")
        .def("is_builtin", &KernelFunction::is_builtin, "Whether it is one of Weft's own.");
    nb::class_<PyFunction, KernelFunction>(m, "UserFunction", nb::dynamic_attr(), nb::is_weak_referenceable(),
                                           "A function that kernels can call, made by @wp.func.")
        .def(
            "__init__",
            [](nb::pointer_and_handle<PyFunction> self, nb::object function, nb::sequence overloads, nb::object native,
               bool has_body, nb::object adjoint, nb::object replay) {
                std::vector<nb::object> earlier;
                for (nb::handle overload : overloads) {
                    if (!nb::isinstance<PyFunction>(overload)) {
                        throw UsageError("Function()", "an overload is " + describe_object(overload) +
                                                           ", expected a function made by @wp.func");
                    }
                    earlier.push_back(nb::borrow(overload));
                }
                PyFunction::Snippets snippets{std::move(native), std::move(adjoint), std::move(replay)};
                new (self.p) PyFunction(function, std::move(earlier), std::move(snippets), has_body);
                self.p->read_early();
                for (const char* name : {"__module__", "__name__", "__qualname__", "__doc__"}) {
                    nb::setattr(self.h, name, nb::getattr(function, name, nb::none()));
                }
                nb::setattr(self.h, "__wrapped__", function);
                nb::setattr(self.h, "key", key_of(function));
            },
            nb::arg("function"), nb::arg("overloads") = nb::tuple(), nb::arg("native_snippet") = nb::none(),
            nb::arg("has_body") = true, nb::arg("adj_native_snippet") = nb::none(),
            nb::arg("replay_snippet") = nb::none())
        .def_ro("func", &PyFunction::function, "The Python function.")
        .def_prop_ro(
            "native_snippet", [](const PyFunction& self) { return self.native.forward; },
            "The C++ of a @wp.func_native; None for other functions.")
        .def_prop_ro(
            "adj_native_snippet", [](const PyFunction& self) { return self.native.adjoint; },
            "The C++ of its gradient; None without one.")
        .def_prop_ro(
            "replay_snippet", [](const PyFunction& self) { return self.native.replay; },
            "The C++ that replaces it in backward passes; None without one.")
        .def_prop_ro(
            "overloads",
            [](const PyFunction& self) {
                nb::list all;
                for (const nb::object& overload : self.overloads) all.append(overload);
                return all;
            },
            "Earlier definitions of the same name for parameters of other types.")
        .def_prop_rw("custom_grad_func", &PyFunction::gradient, &PyFunction::set_gradient, nb::arg().noconvert(),
                     "The function of @wp.func_grad for it, or None.")
        .def_prop_rw("custom_replay_func", &PyFunction::replay, &PyFunction::set_replay, nb::arg().noconvert(),
                     "The function of @wp.func_replay for it, or None.")
        .def_prop_ro(
            "input_types", [](const PyFunction& self) { return input_types(self.function); },
            "The annotations of its parameters by their names, typing.Any for one without.")
        .def_prop_ro(
            "defaults", [](const PyFunction& self) { return parameter_defaults(self.function); },
            "The default values of its parameters by their names.")
        .def_prop_ro(
            "signature",
            [](const PyFunction& self) { return nb::module_::import_("inspect").attr("signature")(self.function); },
            "The signature of the Python function, an inspect.Signature.")
        .def(
            "__call__",
            [](const PyFunction& self, nb::args arguments, nb::kwargs keywords) {
                if (!self.has_body) {
                    const std::string name = nb::str(self.function.attr("__name__")).c_str();
                    throw UsageError(name + "()",
                                     "is written in C++, which kernels can call and Python cannot. help: "
                                     "give the Python function a body, which runs here",
                                     ErrorCategory::type);
                }
                return self.function(*arguments, **keywords);
            },
            "Runs the Python function itself, on Python values.")
        .def("__repr__", [](const PyFunction& self) {
            return "<warp.Function " + std::string(nb::str(self.function.attr("__qualname__")).c_str()) + ">";
        });

    nb::class_<Builtin, KernelFunction>(m, "Builtin", nb::dynamic_attr(), nb::type_slots(kBuiltinSlots),
                                        "A function of the builtin table, such as wp.dot.")
        .def(
            "__init__",
            [](nb::pointer_and_handle<Builtin> self, std::string name, const std::string& documentation) {
                nb::setattr(self.h, "__name__", nb::str(name.c_str()));
                nb::setattr(self.h, "__doc__", nb::str(documentation.c_str()));
                new (self.p) Builtin{std::move(name), nullptr};
            },
            nb::arg("name"), nb::arg("doc") = "")
        .def_ro("name", &Builtin::name)
        .def_ro("key", &Builtin::name, "Its name.")
        .def_prop_ro(
            "func", [](const Builtin&) { return nb::none(); }, "None: it has no Python function.")
        .def_prop_ro(
            "module", [](const Builtin&) { return nb::none(); }, "None: it belongs to every module.")
        .def_prop_ro(
            "defaults", [](const Builtin&) { return nb::dict(); }, "None that Python could read: empty.")
        .def("__repr__", [](const Builtin& self) { return "<warp builtin " + self.name + ">"; })
        .def("__reduce__", [](const Builtin& self) {
            return nb::make_tuple(nb::module_::import_("warp._weft").attr("builtin"), nb::make_tuple(self.name));
        });
}

}  // namespace weft::frontend
