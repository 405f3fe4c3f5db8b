// Memory of CUDA devices that processes share: one hands out a handle, others open it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/array.h"

namespace weft::runtime {

using IpcHandle = std::array<std::byte, 64>;

bool is_ipc_supported(const Device& device);
// Of the memory that begins with the array's first element. Throws UsageError in the name of `api` if there is none.
IpcHandle ipc_handle(const Array& array, const char* api);

struct OpenedMemory {
    void* data;
    std::int64_t size_bytes;
};
// Memory of another process, until it is closed. Throws UsageError if the driver knows no such memory.
OpenedMemory open_ipc_handle(const IpcHandle& handle, Device& device, const char* api);
// When the work that may touch it is done.
void close_ipc_handle(void* data, Device& device);

}  // namespace weft::runtime
