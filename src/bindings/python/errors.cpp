// An error of kind K and category C is raised as a class that derives from K's class and from C's builtin. These
// classes are made at the first raise. They carry the name of K's class, so that a traceback reads "warp.CompileError:
// ...".
#include "bindings/python/errors.h"

#include <nanobind/stl/string.h>

#include <map>
#include <string>
#include <utility>

namespace weft::bindings {
namespace {

enum class ErrorKind { compile, usage, internal };
constexpr const char* kKindNames[] = {"CompileError", "UsageError", "InternalError"};
constexpr const char* kKindDocs[] = {
    "A kernel or function is wrong. `path`, `line` and `column` name the place, `message` the mistake.",
    "A call of the API is wrong. If debug mode found the mistake in a kernel, `path`, `line` and `column` name "
    "the place.",
    "Weft itself is wrong: please report it.",
};

struct Classes {
    nb::object bases[3];
    std::map<std::pair<ErrorKind, ErrorCategory>, nb::object> made;
    nb::object restore;  // the unpickling function
};
// Leaked on purpose: exceptions may be raised while the interpreter shuts down.
Classes& classes() {
    static auto* instance = new Classes;
    return *instance;
}

PyObject* builtin_of(ErrorCategory category) {
    switch (category) {
        case ErrorCategory::type:
            return PyExc_TypeError;
        case ErrorCategory::value:
            return PyExc_ValueError;
        case ErrorCategory::runtime:
            return PyExc_RuntimeError;
        case ErrorCategory::index:
            return PyExc_IndexError;
        case ErrorCategory::attribute:
            return PyExc_AttributeError;
        case ErrorCategory::name:
            return PyExc_NameError;
        case ErrorCategory::syntax:
            return PyExc_SyntaxError;
        case ErrorCategory::memory:
            return PyExc_MemoryError;
        case ErrorCategory::key:
            return PyExc_KeyError;
        case ErrorCategory::overflow:
            return PyExc_OverflowError;
        case ErrorCategory::zero_division:
            return PyExc_ZeroDivisionError;
        case ErrorCategory::assertion:
            return PyExc_AssertionError;
        case ErrorCategory::arithmetic:
            return PyExc_ArithmeticError;
        case ErrorCategory::lookup:
            return PyExc_LookupError;
        case ErrorCategory::not_implemented:
            return PyExc_NotImplementedError;
    }
    return PyExc_RuntimeError;
}

nb::object new_class(const char* name, nb::handle bases, nb::dict members) {
    members["__module__"] = "warp";
    return nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type))(name, bases, members);
}

ErrorCategory category_of(nb::handle builtin) {
    const std::string name = nb::cast<std::string>(nb::str(builtin.attr("__name__")));
    if (const std::optional<ErrorCategory> category = category_named(name);
        category && builtin.is(builtin_of(*category)))
        return *category;
    throw InternalError("usage_error(): no category for " + nb::cast<std::string>(nb::repr(builtin)));
}

nb::object class_of(ErrorKind kind, ErrorCategory category) {
    nb::object& base = classes().bases[static_cast<int>(kind)];
    if (category == ErrorCategory::runtime) return base;
    nb::object& made = classes().made[{kind, category}];
    if (!made.is_valid()) {
        nb::dict members;
        members["_category"] = static_cast<int>(category);
        // traceback prints the `msg` of a SyntaxError, which only SyntaxError's own constructor would set.
        if (category == ErrorCategory::syntax)
            members["msg"] = nb::borrow(reinterpret_cast<PyObject*>(&PyProperty_Type))(base.attr("__str__"));
        // A name that a kernel does not know is a KeyError for programs of release 1.19, a NameError in Python.
        const nb::object first =
            kind == ErrorKind::compile && category == ErrorCategory::name ? class_of(kind, ErrorCategory::key) : base;
        made = new_class(kKindNames[static_cast<int>(kind)], nb::make_tuple(first, nb::borrow(builtin_of(category))),
                         members);
    }
    return made;
}

ErrorKind kind_of(const Error& error) {
    if (dynamic_cast<const CompileError*>(&error)) return ErrorKind::compile;
    return dynamic_cast<const UsageError*>(&error) ? ErrorKind::usage : ErrorKind::internal;
}

void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const Error& error) {
        nb::object exception = exception_from(error);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
}

}  // namespace

nb::object exception_from(const Error& error) {
    nb::object exception = class_of(kind_of(error), error.category)(nb::str(error.what()));
    const auto add_place = [&](const Span& span) {
        exception.attr("path") = span ? nb::cast(span.source->path) : nb::none();
        exception.attr("line") = span.line;
        exception.attr("column") = span.column + 1;
    };
    if (const auto* compile = dynamic_cast<const CompileError*>(&error)) {
        exception.attr("message") = compile->message;
        add_place(compile->span);
    } else if (const auto* usage = dynamic_cast<const UsageError*>(&error); usage && usage->span) {
        add_place(usage->span);
    }
    return exception;
}

void bind_errors(nb::module_& m) {
    // Pickled by kind and category, because the class itself cannot be found by its name.
    m.def(
        "_restore_error",
        [](int kind, int category, nb::tuple arguments, nb::dict state) {
            nb::object exception =
                class_of(static_cast<ErrorKind>(kind), static_cast<ErrorCategory>(category))(*arguments);
            exception.attr("__dict__").attr("update")(state);
            return exception;
        },
        nb::arg("kind"), nb::arg("category"), nb::arg("args"), nb::arg("state"));
    classes().restore = m.attr("_restore_error");
    // Functions of this module are pickled by name, as Python's own are.
    nb::module_::import_("copyreg").attr("pickle")(classes().restore.type(),
                                                   nb::module_::import_("operator").attr("attrgetter")("__name__"));

    m.def(
        "usage_error",
        [](const std::string& text, nb::handle builtin) {
            return class_of(ErrorKind::usage, category_of(builtin))(nb::str(text.c_str()));
        },
        nb::arg("text"), nb::arg("builtin"),
        "A UsageError that also derives from a builtin exception, for Python code to raise.");

    const nb::object runtime_error = nb::borrow(PyExc_RuntimeError);
    for (int kind = 0; kind < 3; ++kind) {
        nb::dict members;
        members["__doc__"] = kKindDocs[kind];
        members["_kind"] = kind;
        members["_category"] = static_cast<int>(ErrorCategory::runtime);
        // KeyError and SyntaxError print themselves in ways that would garble a message of several lines.
        members["__str__"] = nb::borrow(PyExc_BaseException).attr("__str__");
        nb::object made = new_class(kKindNames[kind], nb::make_tuple(runtime_error), members);
        made.attr("__reduce__") = nb::cpp_function(
            [](nb::handle self) {
                nb::object arguments = self.attr("args"), state = self.attr("__dict__");
                return nb::make_tuple(classes().restore,
                                      nb::make_tuple(self.attr("_kind"), self.attr("_category"), arguments, state));
            },
            nb::is_method(), nb::scope(made));
        classes().bases[kind] = made;
        m.attr(kKindNames[kind]) = made;
    }
    // The names of release 1.19 for mistakes in kernels of one category.
    m.attr("WarpCodegenError") = class_of(ErrorKind::compile, ErrorCategory::runtime);
    m.attr("WarpCodegenAttributeError") = class_of(ErrorKind::compile, ErrorCategory::attribute);
    m.attr("WarpCodegenIndexError") = class_of(ErrorKind::compile, ErrorCategory::index);
    m.attr("WarpCodegenKeyError") = class_of(ErrorKind::compile, ErrorCategory::key);
    m.attr("WarpCodegenTypeError") = class_of(ErrorKind::compile, ErrorCategory::type);
    m.attr("WarpCodegenValueError") = class_of(ErrorKind::compile, ErrorCategory::value);
    nb::register_exception_translator(&translate);
}

}  // namespace weft::bindings
