// Forward mode: the kernel that carries tangents along with its values.
//
// Every value gets a tangent, every array a tangent array that holds the tangents of its elements; the program is
// otherwise the one that it was, effects included. The kernel takes its arguments, and then one more for each: the
// tangent of a value, the tangent array of an array. Those that have no derivative (integers, arrays of integers) are
// there too, and are not looked at. Parameters that the compiler added (ir::ImplicitParameter) and their tangent arrays
// come last.
//
// It takes adjoints as well: the tangent array of an array's gradient is the gradient of its tangent array. That is how
// products with the Hessian are made, forward over reverse.
#pragma once

#include <memory>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

struct JvpOptions {
    // By parameter: false where the tangent is zero, and that of what is written is not wanted.
    std::vector<bool> active;
    bool of_adjoint = false;  // second derivatives: an exchange takes the gradient of an extreme
};

// `kernel` has its calls inlined. Throws CompileError where the program has no derivative that could be computed here.
std::unique_ptr<ir::Function> jvp(const ir::Function& kernel, const JvpOptions& options);

}  // namespace weft::transform
