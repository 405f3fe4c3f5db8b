// The first derivative of every operation that works component by component. Reverse mode and forward mode both read
// these rules. The conventions at kinks and singular points are those of docs/gradients.md.
#pragma once

#include <span>

#include "ir/builder.h"

namespace weft::transform {

// a + b of two adjoints or tangents, part by part; parts without a derivative are zero.
ir::Value* sum(ir::Builder& builder, ir::Value* a, ir::Value* b);

// d · ∂result/∂operand `which`, component by component; null if that is zero everywhere. `op` has the derivative
// `partial` in ops.def. Zero times an infinite derivative is zero, so a branch that was not taken contributes nothing.
// `order` says how often the result will be differentiated again, by d too: it then keeps its derivative by d at d = 0.
ir::Value* times_partial(ir::Builder& builder, ir::Op op, std::span<ir::Value* const> operands, ir::Value* result,
                         std::size_t which, ir::Value* d, int order = 0);

}  // namespace weft::transform
