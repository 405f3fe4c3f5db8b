// A program's own source of memory for the arrays of a CUDA device (wp.set_device_allocator), and managed memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace weft::runtime {

struct Buffer;
class Device;

class ProgramAllocator {
public:
    virtual ~ProgramAllocator() = default;
    // At a multiple of 64, of the device whose context is current. Throws if there is no memory.
    virtual void* allocate(std::int64_t size_bytes) = 0;
    // When the device's work is done, on any thread. Throws nothing.
    virtual void deallocate(void* data, std::int64_t size_bytes) noexcept = 0;
    // The number of wp.MemoryKind, if it says so.
    virtual std::optional<int> memory_kind() const = 0;
};

inline constinit std::atomic<bool> has_allocators{false};
// Null gives the device its own memory again. Earlier memory goes back to the allocator that it came from.
// Precondition: a CUDA device.
void set_allocator(Device& device, std::shared_ptr<ProgramAllocator> allocator);
std::shared_ptr<ProgramAllocator> allocator_of(Device& device);

// Null if the device has no such allocator.
std::shared_ptr<Buffer> find_buffer_of_program(std::int64_t size_bytes, bool zeroed, Device& device);
inline std::shared_ptr<Buffer> buffer_of_program(std::int64_t size_bytes, bool zeroed, Device& device) {
    if (!has_allocators.load(std::memory_order_relaxed)) return nullptr;
    return find_buffer_of_program(size_bytes, zeroed, device);
}

// Memory that moves between the host and GPUs by itself, of the current CUDA context. Throws UsageError.
std::uintptr_t allocate_managed(std::int64_t size_bytes);
void free_managed(std::uintptr_t address);

// Whether profilers collect from now on: those that were told to wait for it. Precondition: a CUDA device.
void set_profiling(Device& device, bool is_on);

}  // namespace weft::runtime
