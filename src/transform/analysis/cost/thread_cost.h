// The time of one thread of a kernel, a rough estimate from its operations. It sets the grain size of launches and the
// lane count.
#pragma once

#include <unordered_set>

#include "ir/ir.h"
#include "transform/analysis/uniformity.h"

namespace weft::transform {

// Nanoseconds per thread if `lanes` threads run at once; atomics in `plain` count as plain code.
double thread_cost(const ir::Function& kernel, const Uniformity& uniformity, int lanes,
                   const std::unordered_set<const ir::Operation*>& plain = {});
// Nanoseconds per thread in scalar code, including the cost of divergent branches.
double scalar_cost(const ir::Function& kernel, const Uniformity& uniformity);

}  // namespace weft::transform
