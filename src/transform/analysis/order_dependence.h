// Whether what a kernel leaves in memory depends on the order in which the atomics of its threads arrive.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// False only where it is the same in any order: sums of integers, extremes and bits, each array by one kind of them and
// read or stored by nothing else of the kernel, and results that nobody looks at. Sums of floats are rounded, and what
// an atomic gave tells what came before. Functions in C++ may do anything. Of functions that are no kernels it is true
// where they have atomics: their callers may touch the same arrays. `noalias`: parameters do not overlap.
bool depends_on_order(const ir::Function& function, bool noalias);

}  // namespace weft::transform
