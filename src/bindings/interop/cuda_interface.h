// __cuda_array_interface__, version 3, by which CuPy, Numba, PyTorch and others describe memory of a CUDA device.
#pragma once

#include "bindings/interop/foreign.h"

namespace weft::bindings {

// The memory that the interface describes; work in the stream that it names has been done. Throws UsageError if the
// interface breaks the protocol, or if there is no such device.
ForeignArray read_cuda_interface(nb::handle object, nb::handle interface, const ForeignName& name);

}  // namespace weft::bindings
