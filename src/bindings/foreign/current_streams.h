// The streams in which other libraries work on CUDA devices.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "runtime/device.h"

namespace weft::bindings {

namespace nb = nanobind;

// The current stream of the library to whose arrays the object belongs, on the device; 0 is the legacy default stream.
// PyTorch and Paddle answer by DLPack's C functions; modules of older ones, and CuPy, are asked if they are loaded.
// Empty for other libraries, for objects that are no arrays of another library, and for memory that is not on the
// device. Precondition: the device is a GPU.
std::optional<std::uint64_t> current_stream_of(nb::handle object, const runtime::Device& device);

}  // namespace weft::bindings
