// The rank of a launch: the number of its dimensions without trailing extents of 1. Rows of one thread would use one
// lane.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// The rank of the code for a kernel in which tid() has so many names; `launch_rank` 0 stands for that number.
int fitted_rank(int names, int launch_rank);

// Fits the kernel to launches of this rank. Names beyond it are 0. If dimensions have no name, the named coordinates do
// not identify a thread any more; compare with Function::tid_rank to find out.
void fit_to_launch(ir::Module& module, int launch_rank);

}  // namespace weft::transform
