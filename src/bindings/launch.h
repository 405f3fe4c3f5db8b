// Running compiled kernels from Python.
#pragma once

#include <span>

#include "bindings/kernel.h"
#include "program/launch.h"

namespace weft::bindings {

// Runs it, without the GIL where that is worth it, and writes what it printed. Throws what it raised, or
// KeyboardInterrupt. `not_finite` is told who first wrote what is not finite, where the kernel notes that.
void execute(const program::CompiledKernel& compiled, const std::byte* block, const program::Grid& grid,
             Fault* not_finite = nullptr);

// Arrays that the kernel wrote count one more version (the tape compares them).
void count_writes(const program::CompiledKernel& compiled, std::span<PyObject* const> values);

void bind_adjoint(nb::module_& m);  // adjoint.cpp

}  // namespace weft::bindings
