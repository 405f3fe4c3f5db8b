// Python functions as calls of XLA, for wp.jax_callable: the function gets arrays over XLA's memory and may launch
// anything. It runs with the GIL, and with no tape.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/interop/xla.h"

namespace weft::bindings {

// For the CPU, for GPUs, and for GPUs in graphs that XLA captures.
xla::Error* function_handler(xla::CallFrame* frame);
xla::Error* gpu_function_handler(xla::CallFrame* frame);
xla::Error* captured_function_handler(xla::CallFrame* frame);

void bind_xla_functions(nanobind::module_& m);

}  // namespace weft::bindings
