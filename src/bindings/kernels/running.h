// The run of a packed launch: its machine code is chosen, the recorder of the thread gets it, and arrays that it wrote
// count a write. wp.launch, launch commands and adjoints share this.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "bindings/kernels/arguments.h"
#include "bindings/kernels/kernel.h"
#include "program/kernel/compiled.h"
#include "program/kernel/grid.h"
#include "program/launch/launch_names.h"
#include "program/launch/nan_check.h"

namespace weft::bindings {

struct PackedLaunch {
    const nb::object& kernel_object;
    PyKernel& kernel;  // in that object
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

// Warns if a global that the kernel was compiled with has another value by now.
void warn_of_changed_name(PyKernel& kernel);

// The machine code for a launch with this block on this device.
inline const program::CompiledKernel& choose(PyKernel& kernel, const runtime::Device& device, const std::byte* block,
                                             const Dimensions& dims) {
    program::Kernel& core = kernel.core();
    if (core.has_watches()) warn_of_changed_name(kernel);
    const program::Variant variant = core.variant_of(device, dims.span(), block);
    const program::CompiledKernel& chosen = core.choose(variant, block);
    if (static_cast<int>(dims.count) < core.tid_names()) program::check_names(core, variant.debug, dims.span(), block);
    return chosen;
}

// Whether it is a tensor of PyTorch or Paddle that requires a gradient.
bool tensor_requires_grad(nb::handle tensor);

// Throws UsageError if the kernel writes to memory that is read-only, or to a tensor whose framework would not notice.
// `holders` has the memory of foreign arrays.
void check_written(PyKernel& kernel, const program::CompiledKernel& compiled, PyObject* const* values,
                   const std::byte* block, const std::vector<runtime::Array>& holders);

// To be called before a launch with KernelFacts::gradients_escape. A kernel that stores structs with array fields makes
// memory point to arrays from any of its arguments: those of the right type, and those that other structs point to. All
// of them live from now on as long as that memory.
void mark_arrays_escaped(const program::CompiledKernel& compiled, PyObject* const* values,
                         std::span<const runtime::Array> holders);

// A tape, as far as launches know it.
class LaunchRecorder {
public:
    // Records the launch and runs it, by the functions below. A launch that fails is not recorded.
    virtual void run(const program::CompiledKernel& compiled, const PackedLaunch& launch) = 0;

protected:
    ~LaunchRecorder() = default;
};

// The recorder of this thread's launches, or null.
LaunchRecorder* launch_recorder();
void set_launch_recorder(LaunchRecorder* recorder);

// Runs the launch, and counts its writes.
void run_unrecorded(const program::CompiledKernel& compiled, const PackedLaunch& launch);
// The same with the results of its atomics kept in `returned`, for the adjoint. `plain` is the code without that.
void run_keeping_atomic_results(const program::CompiledKernel& plain, const PackedLaunch& launch,
                                std::span<runtime::Array> returned);
// Runs the launch by `recorder`, if there is one.
inline void run(LaunchRecorder* recorder, const program::CompiledKernel& compiled, const PackedLaunch& launch) {
    if (recorder)
        recorder->run(compiled, launch);
    else
        run_unrecorded(compiled, launch);
}

// Arrays that the kernel wrote count one more version (the tape compares them).
void count_writes(const program::CompiledKernel& compiled, PyObject* const* values);

// Adds arrays to verify_fp's check, before the launch: those of `values` whose parameter the kernel writes, by
// `effects`. `of` is put before their names.
void watch_written(program::NanCheck& check, PyKernel& kernel, const std::vector<ParameterEffects>& effects,
                   PyObject* const* values, const std::string& of = "");

// The arrays in a Python list; and the list with new arrays in place of those that have other memory.
std::vector<runtime::Array> arrays_of(nb::list list);
void replace_arrays(nb::list list, std::vector<runtime::Array> arrays);

}  // namespace weft::bindings
