// Simplification: constants, unused values, repeated values, branches and loops.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Folds constants, removes unused values, merges equal values, forwards through extract/make, simplifies ifs with
// constant conditions. Keeps effects and their order.
void simplify(ir::Function& function);

}  // namespace weft::transform
