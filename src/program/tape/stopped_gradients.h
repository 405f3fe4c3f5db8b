// Gradients that a backward pass would lose, because an array has none. It was written from arrays that have one, or
// lies in memory of one, and a differentiated launch reads it. Its part of the gradient would be missing silently.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "program/tape/tape.h"

namespace weft::program {

// Notes that elements of the memory have a gradient, which other arrays over it may lack. `gradient` is its memory, or,
// for a tensor that requires a gradient which a tape does not reach, the tensor's own. The note ends with either.
void note_gradient_beside(const runtime::BufferPtr& memory, const runtime::BufferPtr& gradient);
enum class Beside { nothing, gradient, tensor };
Beside gradient_beside(const Variable& array);

// Whether a gradient may stop on the tape at all: 0 if not, else a number that is the same for tapes of the same
// launches whose arguments have gradients at the same places. Takes some nanoseconds an entry.
std::size_t may_stop_gradients(const Tape& tape);

// One text for each place at which a gradient stops in a backward pass of the tape from `seeds`; without seeds, from
// all arrays with gradients. It names the argument, the launches that write and read it, and their lines.
std::vector<std::string> stopped_gradients(const Tape& tape, std::span<const Variable* const> seeds);

}  // namespace weft::program
