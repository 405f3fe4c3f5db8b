// The source of the memory of a GPU's arrays, and access of other GPUs to it.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace weft::runtime {

struct Array;

// The memory pool of a GPU: memory is allocated and freed in the order of streams, and freed memory stays in the pool
// for reuse. Without it, each allocation is the driver's own and synchronizes the device.
class MemoryPool {
public:
    virtual bool is_supported() const = 0;
    virtual bool is_enabled() const = 0;
    // Existing memory is returned to its own source. Throws UsageError if pools are not supported.
    virtual void set_enabled(bool is_enabled) = 0;

    // Free bytes that stay in the pool when the device is synchronized. These functions throw UsageError if pools are
    // not supported.
    virtual std::uint64_t release_threshold() = 0;
    virtual void set_release_threshold(std::uint64_t bytes) = 0;
    virtual std::uint64_t used() = 0;
    virtual std::uint64_t most_used() = 0;

protected:
    ~MemoryPool() = default;
};

// Access of one GPU, the peer, to the memory of another, the owner. The driver grants access to pools and to all other
// memory separately.
enum class MemoryOf { plain, pool };
bool can_open(MemoryOf kind, Device& owner, Device& peer);
bool is_open(MemoryOf kind, Device& owner, Device& peer);
// Throws UsageError in the name of `api` if it is not possible.
void set_open(MemoryOf kind, Device& owner, Device& peer, bool is_open, const char* api);

// Whether the array's memory comes from the pool of its device.
bool is_pooled(const Array& array);
// Whether kernels of `device` can access the array's memory.
bool may_touch(Device& device, const Array& array);
// Whether launches on `device` accept the array: all memory that its kernels can access, or only the device's own.
bool launches_take(Device& device, const Array& array);
void set_only_own_arrays(bool are_asked_for);  // wp.config.launch_array_access_mode

// 12080 is 12.8; 0 if there is no working driver. Asks for the driver.
int cuda_driver_version();

// Whether devices that are opened later start with their pools enabled: wp.config.enable_mempools_at_init.
void set_pools_at_init(bool are_enabled);

}  // namespace weft::runtime
