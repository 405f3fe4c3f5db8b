// Gradients of arguments that are no arrays. An adjoint adds to gradients in memory, and a number has none: so the
// kernel reads such numbers from memory that its launch provides, and their gradients are those of this memory.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// Makes the kernel (calls inlined) read all numbers with a derivative in the parameters that `which` marks from arrays
// of one element: ir::ImplicitParameter::Kind::number, behind its parameters.
void read_numbers_from_memory(ir::Function& kernel, const std::vector<bool>& which);

}  // namespace weft::transform
