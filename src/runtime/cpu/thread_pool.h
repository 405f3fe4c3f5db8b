// The CPU's threads: one oneTBB arena for all launches. Small launches run on the caller, in order.
#pragma once

#include <cstdint>

#include "binary/cpu_abi.h"
#include "runtime/cpu/interrupts.h"

namespace weft::runtime {

// Number of threads of a launch: $WARP_CPU_THREADS, else the number of CPUs this process may use.
int cpu_threads();
void set_cpu_threads(int count);

// Whether so few threads run on the caller at once. `cost_ns` is that of one.
inline bool is_small_launch(std::int64_t count, double cost_ns) {
    constexpr std::int64_t kFew = 64;
    constexpr double kInlineNs = 30'000;  // waking a worker takes some microseconds
    return count == 1 || (count <= kFew && cost_ns * static_cast<double>(count) < kInlineNs);
}

// Runs threads [0, count) of a kernel.
//
// - `cost_ns`, of one thread, sets the grain: work below some tens of microseconds runs on the caller.
// - `row` is the extent of the last axis: chunks are cut at multiples of it if possible.
// - `interrupts` is polled by long launches, which return early when it says so.
// - Chunks have at least `least` threads if there is work for more than one.
// - `threads` limits the CPU threads; 0: no limit. On one, chunks run in order and are the same in each run.
//
// Callable from many threads at once, and again after fork.
void parallel_launch(KernelEntryPoint entry, const void* arguments, const LaunchContext& context, std::int64_t count,
                     std::int64_t row, double cost_ns, Interrupts& interrupts, std::int64_t least = 0, int threads = 0);

// Runs body(begin, end) over [0, count) in chunks of at least `grain`: for fills, copies and similar work.
void parallel_range(std::int64_t count, std::int64_t grain, void (*body)(void* state, std::int64_t, std::int64_t),
                    void* state);

}  // namespace weft::runtime
