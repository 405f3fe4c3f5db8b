// CUDA devices by their ordinals and contexts. Code that works with any device uses device.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "binary/target.h"

namespace weft::runtime {

class Device;

// GPUs by ordinal, then the devices of map_cuda_context(). The first call asks the driver.
std::vector<Device*> cuda_devices();
// The GPU with this ordinal. Precondition: it exists.
Device& cuda_device(int ordinal);
// The target of code for GPUs of an architecture (86 for 8.6). Such code also runs on later ones.
Target cuda_target(int arch);
// The reason why there is no CUDA device; empty if there is one.
const std::string& cuda_problem();

// Names a CUDA context of another library, given by its handle; 0 is the current context of this thread. The context
// becomes a device of its own; for the primary context of a GPU, the name becomes an alias of that GPU's device. Throws
// UsageError if the name is taken or there is no such context.
Device& map_cuda_context(const std::string& alias, std::uint64_t context);
// Removes the name; the context may be destroyed then. Throws UsageError if there is no such name, or memory of the
// device is in use.
void unmap_cuda_context(const std::string& alias);
std::uint64_t cuda_context(Device& device);

}  // namespace weft::runtime
