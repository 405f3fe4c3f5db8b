// Memory of a CPU device that is not ordinary memory of the host. Plain C, so that it may come from another library.
#pragma once

#include <cstdint>

namespace weft::runtime {

struct CpuMemory {
    // 64-byte aligned, holding anything; null where there is no more.
    void* (*allocate)(std::int64_t size_bytes);
    void (*free)(void* data, std::int64_t size_bytes);
    // The device's own work touches this memory only between the two. Calls nest, and come from any thread.
    void (*open)();
    void (*close)();
};

}  // namespace weft::runtime
