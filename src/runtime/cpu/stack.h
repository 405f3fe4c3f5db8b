// Memory for values that loops save in the forward pass and read in the backward pass: a stack for each worker,
// separate from the thread's own, that grows as needed. Called by machine code.
#pragma once

#include <cstdint>

namespace weft::runtime {

// `size_bytes` bytes, 64-byte aligned, uninitialized.
extern "C" void* weft_stack_take(std::int64_t size_bytes);
// Frees `memory` and everything that this thread took after it.
extern "C" void weft_stack_release(void* memory);

// Memory for a log of unknown length. `rows` is set to the number of rows of `row_bytes` that the system has room for
// (at most 2^31 - 1). The memory is uninitialized. Its first part is anonymous memory; the rest is backed by an unnamed
// file in $TMPDIR or /var/tmp, so that the system may page it out. `number` distinguishes the logs of a kernel. Each
// worker has one log of each number, and a kernel that requests it again overwrites it.
extern "C" void* weft_long_stack(std::int64_t number, std::int64_t row_bytes, std::int64_t* rows);

// At the end of a kernel: frees everything beyond the memory that an idle worker keeps.
extern "C" void weft_stack_trim();

}  // namespace weft::runtime
