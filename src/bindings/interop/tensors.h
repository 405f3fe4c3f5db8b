// Tensors of PyTorch and Paddle as arrays, and arrays as their tensors, with shared gradients.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_tensors(nanobind::module_& m);

}  // namespace weft::bindings
