// Leaves machine code of a kernel at any of its instructions if the launch is to end, so that loops need no polls.
//
// A thread that runs long code registers in a list. A watcher thread reads the list every 20 ms and sends SIGURG to
// threads that are still in the same chunk. The handler acts only if it interrupted the kernel's own machine code;
// functions of the runtime or of libraries may hold a lock. It polls on the launching thread. If the launch is to end,
// the thread continues after its chunk. SIGURG, as in Go's runtime: debuggers pass it on, programs ignore it by
// default, and a handler of the program receives the signals that are not ours.
#pragma once

#include <cstdint>

#include "binary/cpu_abi.h"

namespace weft::runtime {

// Calls a kernel whose threads may run for long; context.interrupts decides. Returns early if it is stopped.
void run_preemptible(KernelEntryPoint entry, const void* arguments, const LaunchContext& context, std::int64_t begin,
                     std::int64_t end);

// Runs threads [begin, end) of a kernel. All calls of kernel code go through here.
inline void run_chunk(KernelEntryPoint entry, const void* arguments, const LaunchContext& context, std::int64_t begin,
                      std::int64_t end) {
    if (context.interrupts == nullptr) return entry(arguments, &context, begin, end);
    run_preemptible(entry, arguments, context, begin, end);
}

}  // namespace weft::runtime
