// Uncontended elements: those that one thread of a launch alone updates, so that its atomics need not be atomic
// (uncontended_atomics.cpp).
//
// All writes to the array must have each coordinate of the thread at the same position among the indices. There it
// stands by itself, or times a constant plus a term too small to reach the elements of another thread.
//
//   a[i] += x;  a[i] -= y               uncontended
//   a[2 * i] += x;  a[2 * i + 1] += y   uncontended
//   m[i, k] += x                        uncontended: no other thread has this row
//   a[i] += x;  a[i + 1] += y           contended: thread i + 1 updates that element too
//
// Different indices must be different elements, which a launch checks (program::shows_twice()). Indices that wrap are
// no danger: of two threads that would meet so, one has an index outside of every array.
#pragma once

#include <unordered_set>

#include "ir/ir.h"

namespace weft::transform {

// The atomics on such elements, local arrays included. `noalias`: the launch promises that written arrays, in
// parameters or in structs that are parameters, overlap no others. Calls must be inlined.
std::unordered_set<const ir::Operation*> uncontended_atomics(const ir::Function& kernel, bool noalias);

}  // namespace weft::transform
