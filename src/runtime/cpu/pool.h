// The CPU's threads: one oneTBB arena for all launches. Small launches run on the caller, in order.
#pragma once

#include <cstdint>

#include "binary/cpu_abi.h"
#include "runtime/cpu/interrupts.h"

namespace weft::runtime {

// Number of threads of launches: $WARP_CPU_THREADS, else the CPUs this process may use.
int cpu_threads();
void set_cpu_threads(int count);

// Runs threads [0, count) of a kernel. `cost_ns` (of one thread) sets the grain: work that is worth less than some tens
// of microseconds runs on the caller. `row` is the extent of the last axis: chunks are cut at multiples of it where
// they can be. Callable from many threads at once, and again after fork. Returns early where `interrupts` say that the
// launch should end, which they are asked where it takes long. Chunks have at least `least` threads, as far as the work
// is enough for more than one. It runs on so many CPU threads; 0 is all. On one, chunks follow each other in order and
// are the same in each run.
void parallel_launch(KernelEntryPoint entry, const void* arguments, const LaunchContext& context, std::int64_t count,
                     std::int64_t row, double cost_ns, Interrupts& interrupts, std::int64_t least = 0, int threads = 0);

// Runs body(begin, end) over [0, count) in chunks of at least `grain`: for fills, copies and the like.
void parallel_range(std::int64_t count, std::int64_t grain, void (*body)(void* state, std::int64_t, std::int64_t),
                    void* state);

}  // namespace weft::runtime
