// How long one thread of a kernel takes: a rough guess from its operations, for the grain size of launches.
#pragma once

#include "ir/ir.h"

namespace weft::codegen {

// Nanoseconds of one thread where `lanes` of them run at once.
double estimate_cost(const ir::Function& kernel, int lanes);

}  // namespace weft::codegen
