// Executes plans of copies (runtime/copy_plan.h) on the host's threads. Nearly every plan ends as memcpy or one tight
// loop.
#pragma once

#include <cstring>

#include "runtime/copy_plan.h"

namespace weft::runtime {

inline constexpr std::int64_t kParallelBytes = 1 << 20;  // below, one thread is faster

void run_copy(const CopyPlan& plan);
void clear_in_parallel(void* data, std::int64_t size_bytes);

inline void run_clear(void* data, std::int64_t size_bytes) {
    if (size_bytes < kParallelBytes)
        std::memset(data, 0, static_cast<std::size_t>(size_bytes));
    else
        clear_in_parallel(data, size_bytes);
}

}  // namespace weft::runtime
