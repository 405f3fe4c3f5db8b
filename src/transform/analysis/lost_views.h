// Views of memory at addresses (a.ptr, wp.array(ptr=...)), and their derivatives.
//
// A view at the address of an array is an `overlay` of it (simplify/address_overlays.cpp), and keeps its gradient.
// Memory at an address that is only known as a number has no gradient, by contract. But a view at the address of one of
// the kernel's arrays that the compiler has lost track of would silently lose the gradient: it is refused.
#pragma once

#include <functional>

#include "ir/ir.h"

namespace weft::transform {

// Throws CompileError, at the user's line, for the first view in `kernel` that would lose a derivative. `has_gradient`
// says which arrays have one.
void refuse_lost_views(const ir::Function& kernel, const std::function<bool(const ir::Value* array)>& has_gradient);

}  // namespace weft::transform
