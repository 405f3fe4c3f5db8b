#include "bindings/python/signatures.h"

#include <nanobind/stl/string.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/python/fastcall.h"

namespace weft::bindings {

namespace {

// A method of these costs some dozens of nanoseconds.
constexpr std::string_view kHotClasses[] = {"Launch"};

PyObject* hand_on(PyObject* function, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return PyObject_Vectorcall(function, args, static_cast<std::size_t>(count), keywords);
}

bool is_made_by(nb::handle object, std::string_view kind) { return Py_TYPE(object.ptr())->tp_name == kind; }

// Splits a list at commas; types may have commas in brackets.
std::vector<std::string> parts_of(std::string_view list) {
    std::vector<std::string> parts;
    int depth = 0;
    for (std::size_t begin = 0, i = 0; i <= list.size(); ++i) {
        if (i < list.size() && (list[i] == '[' || list[i] == '(')) ++depth;
        if (i < list.size() && (list[i] == ']' || list[i] == ')')) --depth;
        if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
        std::string_view part = list.substr(begin, i - begin);
        while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
        if (!part.empty()) parts.emplace_back(part);
        begin = i + 1;
    }
    return parts;
}

std::string default_text(nb::handle value) {
    const bool is_literal = value.is_none() || PyBool_Check(value.ptr()) || PyLong_CheckExact(value.ptr()) ||
                            PyFloat_CheckExact(value.ptr()) || PyUnicode_CheckExact(value.ptr());
    return is_literal ? nb::cast<std::string>(nb::repr(value)) : "...";
}

// The parameters of nanobind's list "self, a, b: int = \0", with the defaults in their places. Types are left out, as
// CPython's parser does not know them. A default that is no literal becomes "...".
std::string parameters(std::string_view list, nb::handle defaults) {
    std::string text;
    for (const std::string& part : parts_of(list)) {
        if (!text.empty()) text += ", ";
        text += part.substr(0, part.find(": "));
        const std::size_t mark = part.rfind(" = \\");
        if (mark != std::string::npos) text += "=" + default_text(defaults[std::stoul(part.substr(mark + 4))]);
    }
    return text;
}

// The text from which CPython takes a signature, or "" for overloads.
std::string described(nb::handle function, const std::string& name) {
    nb::object overloads = function.attr("__nb_signature__");
    if (nb::len(overloads) != 1) return "";
    nb::object entry = overloads[0];
    std::string signature = nb::cast<std::string>(entry[0]);
    const std::size_t begin = signature.find('('), end = signature.rfind(") -> ");
    if (begin == std::string::npos || end == std::string::npos) return "";
    nb::object documentation = entry[1];
    return name + "(" + parameters(std::string_view(signature).substr(begin + 1, end - begin - 1), entry[2]) +
           ")\n--\n\n" + (documentation.is_none() ? "" : nb::cast<std::string>(documentation));
}

// A builtin function that calls `function`, or null.
nb::object builtin_of(nb::handle function, const std::string& name, nb::handle module) {
    static std::deque<std::string> texts;
    static std::deque<PyMethodDef> definitions;
    std::string text = described(function, name);
    if (text.empty()) return {};
    const char* kept_name = texts.emplace_back(name).c_str();
    const char* kept_text = texts.emplace_back(std::move(text)).c_str();
    PyMethodDef& definition =
        definitions.emplace_back(PyMethodDef{kept_name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(hand_on)),
                                             METH_FASTCALL | METH_KEYWORDS, kept_text});
    nb::object made = nb::steal(PyCFunction_NewEx(&definition, function.ptr(), module.ptr()));
    if (!made.is_valid()) throw nb::python_error();
    return made;
}

void describe_methods(nb::handle type) {
    nb::object module = type.attr("__module__");
    std::vector<std::pair<std::string, nb::object>> found;
    for (auto [name, value] : nb::borrow<nb::dict>(type.attr("__dict__").attr("copy")())) {
        std::string text = nb::cast<std::string>(nb::handle(name));
        if (text.front() == '_' || !is_made_by(value, "nanobind.nb_method")) continue;
        if (nb::object made = builtin_of(value, text, module); made.is_valid()) {
            found.emplace_back(text, nb::steal(PyInstanceMethod_New(made.ptr())));
        }
    }
    for (auto& [name, method] : found) nb::setattr(type, name.c_str(), method);
}

bool is_hot(nb::handle type) {
    std::string name = nb::cast<std::string>(type.attr("__name__"));
    for (std::string_view hot : kHotClasses) {
        if (name == hot) return true;
    }
    return false;
}

}  // namespace

void describe_signatures(nb::module_& m) {
    const nb::str module("warp");
    std::vector<std::pair<std::string, nb::object>> found;
    for (auto [name, value] : nb::borrow<nb::dict>(m.attr("__dict__"))) {
        std::string text = nb::cast<std::string>(nb::handle(name));
        if (nb::type_check(value)) {
            if (!is_hot(value)) describe_methods(value);
        } else if (text.front() != '_' && is_made_by(value, "nanobind.nb_func")) {
            if (nb::object made = builtin_of(value, text, module); made.is_valid()) found.emplace_back(text, made);
        }
    }
    for (auto& [name, function] : found) m.attr(name.c_str()) = function;
}

}  // namespace weft::bindings
