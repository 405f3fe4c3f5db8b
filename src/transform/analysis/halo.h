// How far the threads of an adjoint reach when they add to gradients of elements that are not their own.
//
// Where every atomic on a memory has, at one place among its indices, the thread's first coordinate give or take a few,
// threads that are far from each other along that axis never meet. A chunk of threads that come one after the other
// then needs atomics near its two ends only, where the neighbouring chunks may be at work; in between it adds plainly,
// in vectors.
//
//   v[i] = u[i - 1] + u[i + 1]      adjoint: u.grad[i - 1] += d; u.grad[i + 1] += d       reach 1
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

struct Halo {
    std::int64_t most = 0;  // of all memories below, along the first axis
    // Those whose atomics reach no further, with the place of the first coordinate among the indices.
    std::map<Memory, std::size_t> memories;
    // It is so far where each of these, the same in all threads, is no smaller than the largest first coordinate.
    std::vector<const ir::Value*> bounds;
};

// Of a kernel that is no adjoint nothing is known.
Halo find_halo(const ir::Function& kernel);

}  // namespace weft::transform
