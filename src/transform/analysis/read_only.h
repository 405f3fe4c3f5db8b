// Arrays that stay constant while a launch runs, so that a GPU may read them through caches that see no writes.
//
// This holds only while no other array of the launch overlaps those that are written (codegen::Options::noalias).
#pragma once

#include <set>

#include "transform/analysis/underlying_memory.h"

namespace weft::transform {

// Array parameters and gradients that the kernel does not write to; and parameters that are no arrays.
std::set<Memory> read_only_memories(const ir::Function& kernel);

}  // namespace weft::transform
