// Memory that a kernel reaches through addresses (a.ptr, wp.array(ptr=...)), where derivatives are concerned.
//
// A view at the address of an array is an `overlay` of it (simplify/address_overlays.cpp), and its gradient comes
// along. What is known only as a number has no gradient: memory that others own, which the contract says. But a view at
// an address of this kernel's arrays that the compiler lost sight of would lose their gradients without a word: it is
// refused.
#pragma once

#include <functional>

#include "ir/ir.h"

namespace weft::transform {

// Throws CompileError, at the user's line, for the first view in `kernel` that would lose a derivative.
// `has_gradient` tells which arrays have any.
void refuse_lost_views(const ir::Function& kernel, const std::function<bool(const ir::Value* array)>& has_gradient);

}  // namespace weft::transform
