// Signatures of nanobind's functions and methods for inspect.signature, which cannot read nanobind's own.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

// Replaces the functions and methods of the module and its classes that nanobind has made by builtin functions, which
// forward their arguments unchanged. Functions with overloads, and those called in hot loops, stay as they are. Call it
// after everything is bound.
void describe_signatures(nanobind::module_& m);

}  // namespace weft::bindings
