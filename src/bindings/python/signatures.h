// Signatures of nanobind's functions and methods for inspect.signature, which reads none of nanobind's own.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

// Puts builtin functions in the place of the functions and methods of the module and its classes that nanobind has
// made. They hand their arguments on as they come. What has overloads or is called in hot loops stays as it is. Call it
// after everything is bound.
void describe_signatures(nanobind::module_& m);

}  // namespace weft::bindings
