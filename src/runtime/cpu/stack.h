// Memory for what loops keep on their way forward, to be read again in the backward pass: a stack for each worker,
// apart from the machine's own, that grows as far as it is asked to. Called by machine code.
#pragma once

#include <cstdint>

namespace weft::runtime {

// `size_bytes` bytes aligned to 64, holding anything.
extern "C" void* weft_stack_take(std::int64_t size_bytes);
// Gives back `memory` and all that this thread took after it.
extern "C" void weft_stack_release(void* memory);

// Room for a log whose length nobody knows: rows of `row_bytes`, as many as the system has room for, which `rows` tells
// (at most 2^31 - 1). It holds anything. The first part is memory; what is written beyond goes to a file without a
// name, in $TMPDIR or /var/tmp, so that the system may move it out of memory. `number` tells logs of a kernel apart;
// each worker has one of each number, and a kernel that asks again for the same one writes over it.
extern "C" void* weft_long_stack(std::int64_t number, std::int64_t row_bytes, std::int64_t* rows);

// At the end of a kernel: gives back what is more than an idle worker keeps.
extern "C" void weft_stack_trim();

}  // namespace weft::runtime
