// Running compiled kernels from Python.
#pragma once

#include "bindings/kernel.h"
#include "program/launch.h"

namespace weft::bindings {

// Runs it, without the GIL where that is worth it, and writes what it printed. Throws what it raised, or
// KeyboardInterrupt.
void execute(const program::CompiledKernel& compiled, const std::byte* block, const program::Grid& grid);

void bind_adjoint(nb::module_& m);  // adjoint.cpp

}  // namespace weft::bindings
