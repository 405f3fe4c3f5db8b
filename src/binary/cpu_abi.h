// The ABI between launches and kernels on a CPU. Fault is common to all devices: types/layout.h.
#pragma once

#include <cstdint>

#include "types/layout.h"

namespace weft {

namespace runtime {
class Interrupts;
class Accesses;
}  // namespace runtime

// The second argument of each call of a kernel's entry, beside the argument block.
struct LaunchContext {
    std::int64_t dim[kMaxDims];                 // extent of each axis of tid(); 1 past the kernel's rank
    Fault* fault;                               // null unless the kernel was built with checks
    Fault* not_finite = nullptr;                // for FaultKind::not_finite, which is no error by itself
    runtime::Interrupts* interrupts = nullptr;  // null unless a thread may run for long and be interrupted
    runtime::Accesses* accesses = nullptr;      // the accesses that a launch of one worker notes
    bool exclusive = false;  // all threads are in one chunk, and no other launch with atomics runs meanwhile
};

// void entry(const void* arguments, const LaunchContext* context, int64 begin, int64 end)
// runs the threads [begin, end) of the grid, counted row-major over context->dim.
using KernelEntryPoint = void (*)(const void*, const LaunchContext*, std::int64_t, std::int64_t);

}  // namespace weft
