// Which arrays of a kernel each thread has an element of to itself: launches of such kernels over one grid may run
// piece by piece, all of them over the first points of the grid, then all over the next (runtime::LoadedKernel).
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

// The parameters of whose arrays every access is at the coordinates of the thread, in their order, as first indices.
// Empty where the kernel does something besides reading and writing elements of arrays that are parameters: it reports,
// calls a library that is not pure, or reaches memory in other ways. Calls must be inlined.
std::optional<std::vector<int>> thread_private_elements(const ir::Function& kernel);

}  // namespace weft::transform
