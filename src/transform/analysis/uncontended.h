// Uncontended elements: those that only one thread of a launch accesses.
//
// Their atomics need not be atomics (uncontended_atomics.cpp). An element is uncontended where every write to its array
// has, for each coordinate of the thread, one place among the indices at which that coordinate stands: by itself, or
// times a constant plus something that is too small to reach what another thread has.
//
//   a[i] += x;  a[i] -= y               uncontended
//   a[2 * i] += x;  a[2 * i + 1] += y   uncontended
//   m[i, k] += x                        uncontended: no other thread has this row
//   a[i] += x;  a[i + 1] += y           not: thread i + 1 accesses that one too
//
// This takes different indices for different elements (a launch tells: program::shows_twice()), and indices that do not
// wrap: between two threads that meet so, there is one whose index is outside of every array.
#pragma once

#include <unordered_set>

#include "ir/ir.h"

namespace weft::transform {

// The atomics of such elements, local arrays among them. `noalias`: the launch promises that arrays that are written,
// of parameters or of structs that are parameters, overlap no others. Calls must be inlined.
std::unordered_set<const ir::Operation*> uncontended_atomics(const ir::Function& kernel, bool noalias);

}  // namespace weft::transform
