// Components of large vectors are loaded next to their use. Code that takes a large value apart, as the adjoint of
// matrix_from_rows() does, reads all components first. Each then occupies a register, or the stack, until it is used:
// the register allocator of LLVM takes time that grows with the square of their number.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Moves loads at constant indices from the thread's memory, and the operations on nothing but these, down to the first
// operation that stays. A load does not pass a write to the same memory.
void delay_component_loads(ir::Function& function);

}  // namespace weft::transform
