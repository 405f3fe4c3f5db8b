// Finds the arrays of which each thread has its own elements. Launches of such kernels over one grid may run piece by
// piece: all of them over the first points of the grid, then all over the next (runtime::LoadedKernel).
//
//   y[i] = a * x[i]           x and y
//   m[i, j] += x[j]           m, for threads (i, j); not x
//   m[i, 0] = m[i, 3]         m: the row is the thread's
//   y[i] = x[i + 1]           y only
#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// The array parameters that are accessed only with the thread's coordinates, in their order, as first indices. Empty if
// the kernel does more than read and write elements of array parameters: if it reports, calls a library function that
// is not pure, or reaches memory in other ways. Calls must be inlined.
std::optional<std::vector<int>> thread_private_elements(const ir::Function& kernel);

}  // namespace weft::transform
