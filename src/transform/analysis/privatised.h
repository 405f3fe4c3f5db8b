// Arrays that a kernel only combines into (sums, counts, extremes), so that parts of a launch may have copies of their
// own.
//
// An atomic whose old value nobody looks at says nothing about order. Where a kernel touches an array by such atomics
// only, and all of one kind that commutes, then no thread of the launch can tell when a contribution arrives.
// Contributions of many threads may be put together first, in a register or in a private copy, and arrive as one atomic
// at the end of a chunk of threads.
//
// This holds only while no other array of the launch overlaps the combined one (codegen::Options::noalias). Of
// gradients that is promised to adjoints (ir::Function::is_adjoint) and nobody else.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

// The memories that are only combined into, with the kind of their atomics (atomic_add stands for additions and
// subtractions). Calls must be inlined.
std::map<Memory, ir::Op> privatised_memories(const ir::Function& kernel);

// Of an adjoint: the array parameters to whose gradients threads only add, at addresses that differ and where any of
// them may meet. Each worker may have such a gradient of its own, and needs no atomics then.
struct Scattered {
    int parameter;
    std::int64_t additions;  // of one thread, as far as one can guess
};
std::vector<Scattered> scattered_gradients(const ir::Function& adjoint);

}  // namespace weft::transform
