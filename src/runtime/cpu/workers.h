// The threads behind launches: pieces of work on the caller and on oneTBB's workers.
//
// The caller takes part, and is never inside of oneTBB: when nothing is left for it, it waits for the others here, and
// can ask meanwhile whether the launch should end.
#pragma once

#include <cstdint>

namespace weft::runtime {

class Interrupts;

// body(state, first, last) over ranges that make up [0, pieces), on at most `threads` threads with the caller's. Each
// thread begins in a part of its own and walks through it in order; one that has finished takes half of what another
// one has left. Throws what a body threw first, when all have ended. `interrupts` may be null.
void run_on_workers(std::int64_t pieces, int threads, Interrupts* interrupts,
                    void (*body)(void* state, std::int64_t first, std::int64_t last), void* state);

}  // namespace weft::runtime
