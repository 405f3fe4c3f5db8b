// Derivatives of functions, as opposed to kernels: those that wp.grad asks for, and those that the user wrote in place
// of a function's own (@wp.func_grad, @wp.func_replay). Calls of the latter are opaque to reverse and forward mode,
// which call the gradient instead of deriving the body; what is called is inlined afterwards like all calls.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/ir.h"

namespace weft::transform {

struct ReverseOptions {
    int order = 0;                                 // how often what calls them will be differentiated
    std::optional<std::int64_t> stack_slots = {};  // AdjointOptions::stack_slots
};

// Writes the bodies of functions that are the reverse of another one (ir::Function::reverse_of).
void write_gradients(ir::Module& module, const ReverseOptions& options = {});

// Gives opaque functions what they lack: a gradient where the user only wrote a replay, and, where the function does
// more than compute values, a replay that does not.
void prepare_custom_derivatives(ir::Module& module, const ReverseOptions& options = {});

// Where gradients that users wrote have been inlined into an adjoint: they are given arrays as they are after the
// launch (ir::ImplicitParameter::Kind::after), whose gradients are those of the arguments.
//
// before:  %g = grad_of %v.after       after:  %g = grad_of %v
void share_gradients(ir::Function& adjoint);

}  // namespace weft::transform
