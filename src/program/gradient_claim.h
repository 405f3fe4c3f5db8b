// Adjoints that run at the same time and add to the same gradient.
#pragma once

#include <vector>

#include "program/launch_layout.h"
#include "program/transformed.h"

namespace weft::program {

// The memory of the gradients in an argument block.
std::vector<Extent> gradients_in(const KernelFacts& kernel, const std::byte* block);

// While it lives, nothing else that claims any of this memory runs in another thread: the elements that a thread of an
// adjoint has for itself are added to without atomics, so two adjoints must not add to them at once. Waits until that
// is so, without the host's lock. A thread that has a claim already may claim parts of it again, and memory that no
// other thread knows.
class GradientClaim {
public:
    explicit GradientClaim(std::vector<Extent> memory);
    ~GradientClaim();
    GradientClaim(const GradientClaim&) = delete;
    GradientClaim& operator=(const GradientClaim&) = delete;

private:
    std::vector<Extent> memory_;
};

}  // namespace weft::program
