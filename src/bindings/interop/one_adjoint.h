// The adjoint of one launch that is on no tape of the program, for frameworks that use a kernel as a function of
// theirs.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "program/kernel/compiled.h"
#include "program/kernel/grid.h"
#include "program/tape/variable.h"

namespace weft::bindings {

// An array argument of the launch, with the contents from before it and the gradient from after it. The adjoint works
// in the memory of both, except for outputs. An output started as zeros, and its memory, which may hold anything, is
// cleared if the adjoint reads it. The gradient of an output is only read, and copied if the adjoint works on it.
struct AdjointArray {
    program::Variable variable;
    bool is_output = false;
};

[[noreturn]] void throw_without_gradient(const PyKernel& kernel, std::string_view api);

// Works in the current stream of `device`. `arrays` has one for each array parameter, in order; `block` has the other
// arguments, and the shapes of arrays. The gradients are afterwards those of the contents from before the launch.
// Throws UsageError in the name of `api` if the kernel was made without a gradient.
void run_one_adjoint(PyKernel& kernel, runtime::Device& device, const program::CompiledKernel& compiled,
                     const program::Grid& grid, const Dimensions& dims, std::byte* block,
                     std::vector<AdjointArray>& arrays, std::string_view api);

}  // namespace weft::bindings
