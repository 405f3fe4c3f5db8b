// Operations that may run for threads that do not need them.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Whether the operation only makes numbers from numbers: without memory, effects, calls and regions. Dynamic indices,
// products of matrices and counts of bits are refused too: they are several instructions for each number.
bool is_cheap_to_speculate(const ir::Operation& operation);

}  // namespace weft::transform
