// Semantic analysis: from the tree of a kernel to typed IR. Resolves names, infers types, picks overloads, instantiates
// user functions for the argument types of their calls, folds constants and wp.static. Every mistake is a CompileError
// at the user's line. Called functions become functions of the same module, one for each combination of argument types.
#pragma once

#include <memory>
#include <vector>

#include "ir/ir.h"
#include "sema/environment.h"
#include "sema/options.h"

namespace weft::sema {

// The module's first function is the kernel. `parameter_types` are needed if the kernel's annotations are generic;
// otherwise its annotations are used.
std::unique_ptr<ir::Module> analyze(const FunctionSource& kernel, const Options& options = {},
                                    std::vector<Type> parameter_types = {});

}  // namespace weft::sema
