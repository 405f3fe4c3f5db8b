// The adjoint of one launch that is on no tape of the program: what frameworks ask of a kernel that is a function of
// theirs.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "program/compiled.h"
#include "program/grid.h"
#include "program/variable.h"

namespace weft::bindings {

// An array argument of the launch, with the contents from before it and the gradient from after it. The memory of both
// is worked on, but for outputs: they started as zeros, and their memory, which holds anything, is cleared where it is
// read; their gradient is only read, and copied where the adjoint works on it.
struct AdjointArray {
    program::Variable variable;
    bool is_output = false;
};

[[noreturn]] void throw_without_gradient(const PyKernel& kernel, std::string_view api);

// `arrays` has one for each array parameter, in order; `block` the other arguments, and the shapes of arrays. The
// gradients are afterwards those of the contents from before the launch. Throws UsageError in the name of `api` where
// the kernel was made without a gradient.
void run_one_adjoint(PyKernel& kernel, const program::CompiledKernel& compiled, const program::Grid& grid,
                     const Dimensions& dims, std::byte* block, std::vector<AdjointArray>& arrays, std::string_view api);

}  // namespace weft::bindings
