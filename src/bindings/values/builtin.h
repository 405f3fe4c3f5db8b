// The builtin table in Python: `wp.dot` is _weft.builtin("dot").
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_builtins(nanobind::module_& m);

}  // namespace weft::bindings
