// Kernels as operators of PyTorch (python/warp/_interop/torch_op.py): the launch, and its adjoint, of plain tensors.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_torch_operator(nanobind::module_& m);

}  // namespace weft::bindings
