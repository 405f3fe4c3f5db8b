// Our three kinds of error as Python exceptions: warp.CompileError, warp.UsageError, warp.InternalError.
//
// Each instance is also an instance of the builtin that its ErrorCategory names (TypeError, ValueError, ...), and all
// of them are RuntimeErrors, which older programs catch.
#pragma once

#include <nanobind/nanobind.h>

#include "support/error.h"

namespace weft::bindings {

namespace nb = nanobind;

// Adds the classes to `m` and makes nanobind raise them for weft::Error.
void bind_errors(nb::module_& m);

// `error` as a Python exception; for code that must raise outside a nanobind call.
nb::object exception_from(const Error& error);

}  // namespace weft::bindings
