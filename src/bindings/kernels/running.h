// How a launch whose arguments are packed runs: its machine code is chosen, a tape that records has it as an entry, and
// arrays that it wrote count a write. wp.launch, launch commands and adjoints share this.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "bindings/gradients/tape.h"
#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "program/compiled.h"
#include "program/launch_names.h"
#include "program/nan_check.h"

namespace weft::bindings {

struct PackedLaunch {
    const nb::object& kernel_object;
    PyKernel& kernel;  // in it
    const std::byte* block;
    const program::Grid& grid;
    const Dimensions& dims;
    std::span<PyObject* const> values;
    const std::vector<runtime::Array>& holders;  // of memory that the block shows
    runtime::Device& device;
};

inline bool has_no_threads(const Dimensions& dims) { return std::ranges::find(dims.span(), 0) != dims.span().end(); }
// For wp.config.print_launches.
void print_launch(const PyKernel& kernel, const Dimensions& dims, const runtime::Device& device);

// Where a global that the kernel was compiled with has got another value.
void warn_of_changed_name(PyKernel& kernel);

// The machine code for this block there.
inline const program::CompiledKernel& choose(PyKernel& kernel, const runtime::Device& device, const std::byte* block,
                                             const Dimensions& dims) {
    program::Kernel& core = kernel.core();
    if (core.has_watches()) warn_of_changed_name(kernel);
    const program::Variant variant = core.variant_of(device, dims.span(), block);
    const program::CompiledKernel& chosen = core.choose(variant, block);
    if (static_cast<int>(dims.count) < core.tid_names()) program::check_names(core, variant.debug, dims.span(), block);
    return chosen;
}

// Throws UsageError where the kernel writes to memory that is read-only, or to a tensor whose framework would not learn
// of it. `holders` has the memory of foreign arrays.
void check_written(PyKernel& kernel, const program::CompiledKernel& compiled, PyObject* const* values,
                   const std::byte* block, const std::vector<runtime::Array>& holders);

// Before a launch with KernelFacts::shows_gradients. A kernel that stores structs with array fields makes memory point
// to arrays that it got from any of its arguments: those of the right type, and what other structs point to. All of it
// lives from now on as long as that memory.
void show_arrays(const program::CompiledKernel& compiled, PyObject* const* values,
                 std::span<const runtime::Array> holders);

// Runs it, and records it before where `recorder` is a tape. What fails is not on the tape.
void run_on_tape(PyTape* recorder, const program::CompiledKernel& compiled, const PackedLaunch& launch);

// Arrays that the kernel wrote count one more version (the tape compares them).
void count_writes(const program::CompiledKernel& compiled, PyObject* const* values);

// What verify_fp looks at: of these values, those of a kernel's parameters with these effects, the arrays that it
// writes, before it does. `of` precedes the names.
void watch_written(program::NanCheck& check, PyKernel& kernel, const std::vector<ParameterEffects>& effects,
                   PyObject* const* values, const std::string& of = "");

// The arrays in a list of Python's; and the list with those of these in their place that are other memory.
std::vector<runtime::Array> arrays_of(nb::list list);
void replace_arrays(nb::list list, std::vector<runtime::Array> arrays);

}  // namespace weft::bindings
