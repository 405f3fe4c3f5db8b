// Gradients of their own for the workers of a launch.
//
// Threads that scatter what they add to a gradient (transform::scattered_gradients) meet at elements that nobody knows
// beforehand, and use atomics: some 8 ns each. Where a launch brings much to an array that is small beside it, each
// worker adds to a gradient of its own instead, plainly; they are added up in the end. The caller works on the real
// one.
#pragma once

#include <span>

#include "program/run.h"

namespace weft::program {

struct GradientView {
    const ArrayView* view;
    Type array;
    std::int64_t additions;  // of one thread
};

// Whether these gradients are there, packed, and small beside a launch of so many threads.
bool pays_to_own(std::span<const GradientView> gradients, std::int64_t threads);

// The threads of run(), of an adjoint with CompiledKernel::own_gradients.
bool run_with_own(const CompiledKernel& adjoint, const std::byte* block, const Grid& grid, bool (*interrupted)());

}  // namespace weft::program
