// How long one thread of a kernel takes: a rough guess from its operations, for the grain size of launches and for the
// choice of the number of lanes.
#pragma once

#include <unordered_set>

#include "ir/ir.h"
#include "transform/analysis/plan.h"

namespace weft::codegen {

// Nanoseconds of one thread where `lanes` of them run at once; with `plain` atomics as plain code.
double estimate_cost(const transform::KernelPlan& plan, int lanes,
                     const std::unordered_set<const ir::Operation*>& plain = {});
// Nanoseconds of one thread that runs alone, in code without lanes, where it counts that threads go different ways.
double estimate_scalar_cost(const transform::KernelPlan& plan);

}  // namespace weft::codegen
