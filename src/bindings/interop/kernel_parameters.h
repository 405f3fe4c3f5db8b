// The parameters of a kernel, for Python modules that make functions of other libraries from kernels.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::bindings {

void bind_kernel_parameters(nanobind::module_& m);

}  // namespace weft::bindings
