// Gradients of arguments that are no arrays. An adjoint adds to gradients in memory, and a number has none. So the
// kernel reads such numbers from memory that its launch provides; their gradients are those of this memory.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// Makes the kernel (calls inlined) read the differentiable numbers in the parameters that `which` marks from arrays of
// one element. These are added behind its parameters, as ir::ImplicitParameter::Kind::number.
void read_numbers_from_memory(ir::Function& kernel, const std::vector<bool>& which);

}  // namespace weft::transform
