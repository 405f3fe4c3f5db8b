// Whether the results of a kernel depend on the order in which the atomics of its threads arrive.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// False only if every order gives the same memory. This holds for sums of integers, extremes and bitwise atomics whose
// results are unused. All atomics on an array must be of one kind, and the kernel must access the array in no other
// way. Sums of floats are rounded, and the result of an atomic shows earlier ones. Functions in C++ may do anything.
// True for functions other than kernels that have atomics, as their callers may access the same arrays. `noalias`:
// parameters do not overlap.
bool depends_on_order(const ir::Function& function, bool noalias);

}  // namespace weft::transform
