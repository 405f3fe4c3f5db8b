// Python functions as calls of XLA, for wp.jax_callable: the function gets arrays over XLA's memory and may launch
// anything. It runs with the GIL, and with no tape.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/interop/xla.h"

namespace weft::bindings {

xla::Error* function_handler(xla::CallFrame* frame);

void bind_xla_functions(nanobind::module_& m);

}  // namespace weft::bindings
