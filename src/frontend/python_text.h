// The texts of Python's strings and exceptions. All functions need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace weft::frontend {

namespace nb = nanobind;

// The text of a Python string as UTF-8; lone surrogates, which have no UTF-8, are written as escapes.
std::string utf8_text(nb::handle text);

// Why this text cannot be a string of a kernel ("a string that ..."); "" if it can.
std::string why_unusable_string(nb::handle text);

// "NameError: name 'x' is not defined": the exception as one line.
std::string exception_text(nb::python_error& error);

}  // namespace weft::frontend
