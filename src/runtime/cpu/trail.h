// Memory for what loops keep on their way forward, to be read again on the way back: a stack for each worker, apart
// from the machine's own, that grows as far as it is asked to. Called by machine code.
#pragma once

#include <cstdint>

namespace weft::runtime {

// `size_bytes` bytes aligned to 64, holding anything.
extern "C" void* weft_trail_take(std::int64_t size_bytes);
// Gives back `memory` and all that this thread took after it.
extern "C" void weft_trail_release(void* memory);

// At the end of a kernel: gives back what is more than an idle worker keeps.
extern "C" void weft_trail_trim();

}  // namespace weft::runtime
