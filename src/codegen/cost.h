// How long one thread of a kernel takes: a rough guess from its operations, for the grain size of launches and for the
// choice of the number of lanes.
#pragma once

#include "ir/ir.h"
#include "transform/vectorize/vectorize.h"

namespace weft::codegen {

// Nanoseconds of one thread where `plan.lanes` of them run at once.
double estimate_cost(const ir::Function& kernel, const transform::VectorPlan& plan);
// Nanoseconds of one thread that runs alone, in code without lanes; `plan` (of any number of lanes) says where threads
// go different ways.
double estimate_scalar_cost(const ir::Function& kernel, const transform::VectorPlan& plan);

// The functions of math.def.
bool is_library_math(ir::Op op);

}  // namespace weft::codegen
