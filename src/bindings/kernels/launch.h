// Running compiled kernels from Python.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bindings/kernels/kernel.h"
#include "program/compiled.h"
#include "program/finite.h"

namespace weft::bindings {

// Arrays that the kernel wrote count one more version (the tape compares them).
void count_writes(const program::CompiledKernel& compiled, std::span<PyObject* const> values);

// What verify_fp looks at: of these values, those of a kernel's parameters with these effects, the arrays that it
// writes, before it does. `of` precedes the names.
void watch_written(program::FiniteCheck& check, PyKernel& kernel, const std::vector<ParameterEffects>& effects,
                   PyObject* const* values, const std::string& of = "");

// The arrays in a list of Python's; and the list with those of these in their place that are other memory.
std::vector<runtime::Array> arrays_of(nb::list list);
void replace_arrays(nb::list list, std::vector<runtime::Array> arrays);

void bind_adjoint(nb::module_& m);  // adjoint.cpp

}  // namespace weft::bindings
