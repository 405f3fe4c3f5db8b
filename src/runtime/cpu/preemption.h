// Leaves machine code of a kernel at any of its instructions, if the launch is to end: loops pay nothing for it.
//
// A thread that runs code which may be long is a line in a list. A watching thread looks at the list every 20 ms, and
// sends SIGURG to the threads that are still in the chunk of before. Their handler, if it interrupted the machine code
// itself (and no function of the runtime or of a library, which may hold a lock), asks the host on the launching
// thread; if the launch is over, the thread goes on behind its chunk. SIGURG, as in Go's runtime: debuggers pass it on,
// programs ignore it unless they have asked for it, and a handler of the program gets those that are not ours.
#pragma once

#include <cstdint>

#include "binary/cpu_abi.h"

namespace weft::runtime {

// The entry of a kernel whose threads may run for long, as context.interrupts says. Returns early if it is stopped.
void run_preemptible(KernelEntryPoint entry, const void* arguments, const LaunchContext& context, std::int64_t begin,
                     std::int64_t end);

// Threads [begin, end) by machine code. All calls of it go through here.
inline void run_chunk(KernelEntryPoint entry, const void* arguments, const LaunchContext& context, std::int64_t begin,
                      std::int64_t end) {
    if (context.interrupts == nullptr) return entry(arguments, &context, begin, end);
    run_preemptible(entry, arguments, context, begin, end);
}

}  // namespace weft::runtime
