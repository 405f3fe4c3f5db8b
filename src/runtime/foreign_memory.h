// Memory and streams of CUDA that other libraries own.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace weft::runtime {

// The device that memory belongs to; null where the driver does not know it as a device's.
Device* cuda_device_of(const void* memory);

// A stream of another library as one of the device, and the other way.
std::shared_ptr<Stream> foreign_stream(Device& device, std::uint64_t stream);
std::uint64_t stream_for_others(Stream& stream);

// Returns when the work in a stream of another library is done, given as the number that its protocol speaks of.
void wait_for_cuda_stream(Device& device, std::uint64_t stream);

}  // namespace weft::runtime
