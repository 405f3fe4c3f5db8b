// The parameters that the compiler added after the user's (ir::ImplicitParameter), as a launch fills them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "program/kernel/transformed.h"
#include "runtime/array.h"

namespace weft::program {

// point_implicit_parameters() fills the implicit parameters in `block`, which has room for them behind the arguments.
// Contents from after the launch are the arrays of the block `after`; the results of atomics are in `returned`.
// Parameters that are copies show the originals, for launch_layout(). make_copies() then copies these, arrays that
// overlap in one piece, and returns the memory of the copies.
void point_implicit_parameters(const KernelFacts& kernel, std::byte* block, const std::byte* after,
                               std::span<const ArrayView> returned);
std::vector<runtime::BufferPtr> make_copies(const KernelFacts& kernel, std::byte* block, runtime::Device& device);

}  // namespace weft::program
