// The retries after a failed allocation on a device.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace weft::runtime {

// Memory of the device. If there is no more: returns unused memory of pools, collects Python's garbage, and tries
// again. Throws UsageError (category memory) in the name of `api` if that fails too.
void* take_memory(Device& device, std::int64_t size_bytes, bool zeroed, Stream& stream, const char* api);

// Sets the function that frees unreachable objects, called if there is no more memory: Python's garbage collector.
void set_memory_collector(void (*collect)());

}  // namespace weft::runtime
