// From Python objects to their meanings in kernels.
#pragma once

#include <nanobind/nanobind.h>

#include "sema/environment.h"

namespace weft::frontend {

namespace nb = nanobind;

// The meaning of a Python object in a kernel: a constant, a type, a function, ... An object without one is of the kind
// `unsupported`, with the reason. Needs the GIL. Throws CompileError if the source of a @wp.func has an error.
sema::Binding binding_from_python(nb::handle object);

}  // namespace weft::frontend
