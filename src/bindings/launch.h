// Running compiled kernels from Python.
#pragma once

#include <span>

#include "bindings/kernel.h"
#include "program/compiled.h"

namespace weft::bindings {

// Arrays that the kernel wrote count one more version (the tape compares them).
void count_writes(const program::CompiledKernel& compiled, std::span<PyObject* const> values);

void bind_adjoint(nb::module_& m);  // adjoint.cpp

}  // namespace weft::bindings
