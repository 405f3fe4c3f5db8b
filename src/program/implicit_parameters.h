// The parameters that the compiler added behind the user's (ir::ImplicitParameter), as a launch fills them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/transformed.h"
#include "runtime/array.h"

namespace weft::program {

// The block of such a kernel has room for KernelFacts::implicit parameters behind the arguments. Those from after the
// launch are the arrays of the block `after`, what atomics returned is in `returned`. Copies first show what they are
// copies of, so that launch_layout() may look at them; then they are made, arrays that overlap in one piece. What is
// returned holds them.
void point_implicit_parameters(const KernelFacts& kernel, std::byte* block, const std::byte* after,
                               std::span<const ArrayView> returned);
std::vector<runtime::BufferPtr> make_copies(const KernelFacts& kernel, std::byte* block, runtime::Device& device);

}  // namespace weft::program
