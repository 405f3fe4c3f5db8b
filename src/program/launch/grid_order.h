// Threads that run in the order of a hash grid.
//
// A loop over neighbours reads memory near the thread's point in space. If the points are in no order in memory, each
// thread reads memory that no other has read lately, and waits for most of it. So such a launch runs code whose threads
// take their coordinates from the grid (transform::follow_grid_order()): points of a cell, and cells side by side, one
// after the other. The order is a permutation of all coordinates. The choice of the grid, and whether points have moved
// since it was built, affect only the time of the launch. Data read of neighbours is copied into that order first.
#pragma once

#include "program/launch/launch_strategy.h"

namespace weft::program {

// Of kernels with queries of hash grids around the points of their threads (KernelFacts::grid_queries).
const LaunchStrategy& grid_order();

}  // namespace weft::program
