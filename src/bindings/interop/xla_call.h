// Kernels as calls of XLA, for wp.jax_kernel: all that is known when JAX traces the call is worked out then, and a run
// fills in the addresses and launches. No Python runs, and the GIL is not needed, except for gradients.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

// Whether this thread is one of XLA's in a call: it has no GIL to give up, and no signals to look for.
bool is_call_of_xla();

void bind_xla_calls(nanobind::module_& m);

}  // namespace weft::bindings
