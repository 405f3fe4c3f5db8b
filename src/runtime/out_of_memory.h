// What happens when a device has no more memory.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace weft::runtime {

// Memory of the device, or UsageError (category memory) in the name of `api` where there is no more: then what is free
// has been given back by pools, garbage of Python has been collected, and it was asked for again.
void* take_memory(Device& device, std::int64_t size_bytes, bool zeroed, Stream& stream, const char* api);

// Gives memory back that nobody uses; called where there is no more. Python's garbage collector.
void set_memory_collector(void (*collect)());

}  // namespace weft::runtime
