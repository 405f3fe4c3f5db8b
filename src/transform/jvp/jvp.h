// Forward mode: the kernel that carries tangents along with its values.
//
// Every value gets a tangent, and every array a tangent array with the tangents of its elements. Otherwise the program
// is unchanged, effects included. The kernel takes its arguments, and then one more for each: the tangent of a value,
// the tangent array of an array. Arguments without a derivative (integers, arrays of integers) have one too, which is
// unused. Parameters that the compiler added (ir::ImplicitParameter) and their tangent arrays come last.
//
// Adjoints can be differentiated too: the tangent array of an array's gradient is the gradient of its tangent array.
// This makes products with the Hessian, forward over reverse.
#pragma once

#include <memory>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

struct JvpOptions {
    // By parameter: false if its tangent is zero and the tangents written to it are not wanted.
    std::vector<bool> active;
    bool of_adjoint = false;  // second derivatives: an exchange moves the gradient of a minimum or maximum
};

// `kernel` has its calls inlined. Throws CompileError if the tangent cannot be computed.
std::unique_ptr<ir::Function> jvp(const ir::Function& kernel, const JvpOptions& options);

}  // namespace weft::transform
