// From a Python function to syntax and names: the only C++ that sees CPython's ast. Everything below runs with the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "sema/environment.h"

namespace weft::frontend {

namespace nb = nanobind;

// Reads the function's source through inspect, parses it with ast and copies the tree. Its environment resolves names
// through the function's globals, closure and builtins when asked, not before. Throws CompileError where the source
// has an error, UsageError where Python cannot give the source.
std::shared_ptr<const sema::FunctionSource> read_function(nb::handle python_function);

}  // namespace weft::frontend
