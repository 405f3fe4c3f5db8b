// Where the memory of a GPU's arrays comes from, and which other GPUs may touch it.
#pragma once

#include <cstdint>

#include "runtime/device.h"

namespace weft::runtime {

struct Array;

// The pool of a GPU: memory is given and taken in the order of streams, and what is free stays there for the next who
// asks. Without it each allocation is the driver's own, and waits for the device.
class Pool {
public:
    virtual bool is_supported() const = 0;
    virtual bool is_enabled() const = 0;
    // Memory that there is already goes back to where it came from. Throws UsageError where pools are not supported.
    virtual void set_enabled(bool is_enabled) = 0;

    // Bytes that stay in the pool when they are free and the device has been waited for. These throw UsageError where
    // pools are not supported.
    virtual std::uint64_t release_threshold() = 0;
    virtual void set_release_threshold(std::uint64_t bytes) = 0;
    virtual std::uint64_t used() = 0;
    virtual std::uint64_t most_used() = 0;

protected:
    ~Pool() = default;
};

// Access of one GPU, the peer, to the memory of another, its owner. The driver knows the memory of pools and all other
// memory as two kinds.
enum class MemoryOf { plain, pool };
bool can_open(MemoryOf kind, Device& owner, Device& peer);
bool is_open(MemoryOf kind, Device& owner, Device& peer);
// Throws UsageError in the name of `api` where it is not possible.
void set_open(MemoryOf kind, Device& owner, Device& peer, bool is_open, const char* api);

// Whether the array's memory comes from the pool of its device.
bool is_pooled(const Array& array);
// Whether kernels of `device` may touch the array's memory.
bool may_touch(Device& device, const Array& array);
// Whether launches on `device` take the array: what its kernels may touch, or only what is its own.
bool launches_take(Device& device, const Array& array);
void set_only_own_arrays(bool are_asked_for);  // wp.config.launch_array_access_mode

// 12080 is 12.8; 0 where there is no driver that works. Asks for the driver.
int cuda_driver_version();

// Whether the next devices to be opened begin with their pools: wp.config.enable_mempools_at_init.
void set_pools_at_init(bool are_enabled);

}  // namespace weft::runtime
