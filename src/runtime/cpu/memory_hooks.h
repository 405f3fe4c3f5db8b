// Memory of a CPU device that is not ordinary memory of the host. Plain C, so that another library may implement it.
#pragma once

#include <cstdint>

namespace weft::runtime {

struct CpuMemory {
    // 64-byte aligned, uninitialized; null if there is no more memory.
    void* (*allocate)(std::int64_t size_bytes);
    void (*free)(void* data, std::int64_t size_bytes);
    // The device's work accesses the memory only between open() and close(). Calls nest, and come from any thread.
    void (*open)();
    void (*close)();
};

}  // namespace weft::runtime
