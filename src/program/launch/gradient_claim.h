// Adjoints that run at the same time and add to the same gradient.
#pragma once

#include <vector>

#include "program/kernel/launch_layout.h"
#include "program/kernel/transformed.h"

namespace weft::program {

// The memory of the gradients in an argument block.
std::vector<Extent> gradients_in(const KernelFacts& kernel, const std::byte* block);

// While it lives, no other thread holds a claim on any of this memory. An adjoint adds without atomics to elements that
// are private to one thread, so two adjoints must not add to them at once. The constructor waits for the other claims,
// without the host's lock. A thread that holds a claim may claim parts of it again, and memory that no other thread can
// know.
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
