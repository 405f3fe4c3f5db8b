// The first derivative of every operation that works component by component: the one statement of the rules, read by
// reverse mode and by forward mode. The conventions at kinks and singular points are those of docs/gradients.md.
#pragma once

#include <span>

#include "ir/builder.h"

namespace weft::transform {

// a + b of two adjoints or tangents: part by part, zero where a part has no derivative.
ir::Value* sum(ir::Builder& builder, ir::Value* a, ir::Value* b);

// d · ∂result/∂operand `which`, component by component; null where that is zero everywhere. `op` is one whose
// derivative is `partial` in ops.def. Zero times an infinite derivative is zero: a branch that was not taken
// contributes nothing. What comes out will be differentiated `again` so often, by d too: where d is zero, and its own
// derivative is not, that counts.
ir::Value* times_partial(ir::Builder& builder, ir::Op op, std::span<ir::Value* const> operands, ir::Value* result,
                         std::size_t which, ir::Value* d, int order = 0);

}  // namespace weft::transform
