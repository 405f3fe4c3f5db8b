// Derivatives of functions, as opposed to kernels: those that wp.grad asks for, and custom derivatives (@wp.func_grad,
// @wp.func_replay). Reverse and forward mode call a custom gradient instead of deriving the function's body; the
// callees are inlined afterwards like all calls.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/ir.h"

namespace weft::transform {

struct ReverseOptions {
    int order = 0;                                 // how often the calling code will be differentiated
    std::optional<std::int64_t> stack_slots = {};  // AdjointOptions::stack_slots
};

// Writes the bodies of functions that are the reverse of another one (ir::Function::reverse_of).
void write_gradients(ir::Module& module, const ReverseOptions& options = {});

// Completes functions with custom derivatives: adds a gradient if the user wrote only a replay, and a replay without
// effects if the function has effects.
void prepare_custom_derivatives(ir::Module& module, const ReverseOptions& options = {});

// Runs when custom gradients have been inlined into an adjoint. They take arrays as they are after the launch
// (ir::ImplicitParameter::Kind::after), whose gradients are those of the arguments.
//
//   before:  %g = grad_of %v.after       after:  %g = grad_of %v
void share_gradients(ir::Function& adjoint);

}  // namespace weft::transform
