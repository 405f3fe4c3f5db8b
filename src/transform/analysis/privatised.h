// Arrays that a kernel only combines into (sums, counts, extremes), so that parts of a launch may have private copies.
//
// The kernel must access such an array only by atomics of one kind that commutes, with unused results. Then no thread
// of the launch can tell when a contribution arrives. Contributions of many threads may be combined first, in a
// register or in a private copy. They arrive as one atomic at the end of a chunk of threads.
//
// This holds only while no other array of the launch overlaps the combined one (codegen::Options::noalias). For
// gradients, only adjoints have that promise (ir::Function::is_adjoint).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

// The memories that are only combined into, with the kind of their atomics (atomic_add stands for additions and
// subtractions). Calls must be inlined.
std::map<Memory, ir::Op> privatised_memories(const ir::Function& kernel);

// Of an adjoint: array parameters to whose gradients threads only add, at addresses that vary and may be the same in
// any two threads. If each worker has a private copy of such a gradient, it needs no atomics.
struct Scattered {
    int parameter;
    std::int64_t additions;  // a guess, for one thread
};
std::vector<Scattered> scattered_gradients(const ir::Function& adjoint);

}  // namespace weft::transform
