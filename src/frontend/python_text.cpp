#include "frontend/python_text.h"

#include <string_view>

namespace weft::frontend {

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

}  // namespace weft::frontend
