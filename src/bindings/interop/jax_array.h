// Arrays of JAX as arrays. The way back is JAX's own (python/warp/_interop/jax_arrays.py).
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_jax_arrays(nanobind::module_& m);

}  // namespace weft::bindings
