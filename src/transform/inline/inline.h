// Inlining: calls of user functions are replaced by the bodies of the functions.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// The calls to replace. `custom_derivatives` keeps functions with custom derivatives and their calls;
// `except_noinline` keeps those that large kernels share (noinline_functions.h).
enum class Calls { all, custom_derivatives, except_noinline };

// Replaces the calls in all functions, callees first, and then drops the functions. A module without a kernel keeps
// those that were not inlined. Terminates, as sema reports recursion as an error.
void inline_calls(ir::Module& module, Calls which = Calls::all);
// The same for the calls in one function; no function is dropped.
void inline_into(ir::Module& module, ir::Function& function, Calls which);

}  // namespace weft::transform
