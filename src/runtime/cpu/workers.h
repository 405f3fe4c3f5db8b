// The threads of launches: pieces of work run on the caller and on oneTBB's workers.
//
// The caller takes part, but is never inside of oneTBB: when it has no work left, it waits here for the others and can
// poll meanwhile whether the launch should end.
#pragma once

#include <cstdint>

namespace weft::runtime {

class Interrupts;

// Calls body(state, first, last) over ranges that cover [0, pieces), on at most `threads` threads including the caller.
// Each thread starts in its own part and walks through it in order; an idle thread steals half of the rest of another.
// Throws the first exception of a body, after all have ended. `interrupts` may be null.
void run_on_workers(std::int64_t pieces, int threads, Interrupts* interrupts,
                    void (*body)(void* state, std::int64_t first, std::int64_t last), void* state);

}  // namespace weft::runtime
