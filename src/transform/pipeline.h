// The whole middle of the compiler, pass by pass, on one page.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/ir.h"
#include "transform/adjoint/adjoint.h"
#include "transform/jvp/jvp.h"

namespace weft::transform {

// Replaces every call of a user function by its body, callees first, and drops functions that nothing calls any more.
// Recursion is an error that sema reports, so this ends.
void inline_calls(ir::Module& module);

// Folds constants, removes values nobody uses, merges equal values, forwards through extract/make, simplifies ifs with
// constant conditions. Keeps effects and their order.
void simplify(ir::Function& function);

struct PipelineOptions {
    // Makes each kernel its adjoint: what is known of the gradients of its parameters.
    std::optional<AdjointOptions> adjoint;
    // Then makes each kernel, or its adjoint, carry tangents.
    std::optional<JvpOptions> jvp;
    // Called after each pass with its name and the module: WEFT_DUMP, weft-opt --stop-after, timings.
    std::function<void(std::string_view pass, const ir::Module&)> after_pass;
    std::string stop_after;
};
void run_pipeline(ir::Module& module, const PipelineOptions& options = {});

}  // namespace weft::transform
