// How far the threads of an adjoint reach when they add to gradients of elements that are not their own: the halo.
//
// Let one index of every atomic on a memory be the thread's first coordinate plus or minus a small constant. Then
// threads that are far from each other along that axis never meet. A chunk of consecutive threads needs atomics only
// near its two ends, as the neighbouring chunks may be at work there. In between it adds plainly, in vectors.
//
//   v[i] = u[i - 1] + u[i + 1]      adjoint: u.grad[i - 1] += d; u.grad[i + 1] += d       halo 1
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

struct Halo {
    std::int64_t most = 0;  // of all memories below, along the first axis
    // The memories whose atomics stay within `most`, each with the position of that index among the indices.
    std::map<Memory, std::size_t> memories;
    // The halo holds if each of these values, the same in all threads, is at least the largest first coordinate.
    std::vector<const ir::Value*> bounds;
};

// Empty for a kernel that is no adjoint.
Halo find_halo(const ir::Function& kernel);

}  // namespace weft::transform
