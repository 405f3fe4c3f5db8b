// __cuda_array_interface__, version 3, which CuPy, Numba, PyTorch and others speak of memory on a CUDA device.
#pragma once

#include "bindings/interop/foreign.h"

namespace weft::bindings {

// What the object says of its memory; work in the stream that it names has been done. Throws UsageError where it does
// not say it as the protocol asks, or where there is no such device.
ForeignArray read_cuda_interface(nb::handle object, nb::handle interface, const ForeignName& name);

}  // namespace weft::bindings
