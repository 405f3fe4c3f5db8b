// Kernels as calls of XLA, for wp.jax_kernel: all that is known when JAX traces the call is worked out then, and a run
// fills in the addresses and launches. No Python runs, and the GIL is not needed, except for gradients.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_xla_calls(nanobind::module_& m);

}  // namespace weft::bindings
