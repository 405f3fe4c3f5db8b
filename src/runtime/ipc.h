// Memory and events of CUDA devices that processes share: one hands out a handle, others open it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

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

// An event without a time, which processes share. Throws UsageError in the name of `api` if the device has none such.
std::shared_ptr<Event> make_interprocess_event(Device& device, const char* api);
// Precondition: the event is one of make_interprocess_event().
IpcHandle event_ipc_handle(Event& event);
// The event of another process. Throws UsageError if the driver knows none of this handle.
std::shared_ptr<Event> open_event_ipc_handle(const IpcHandle& handle, Device& device, const char* api);

}  // namespace weft::runtime
