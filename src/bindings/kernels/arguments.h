// A launch's arguments as machine code takes them: the argument block and the grid.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "bindings/kernels/kernel.h"
#include "runtime/array.h"

namespace weft::bindings {

class LaunchStreams;

// Writes one argument to its place in the block. Views of foreign arrays that `value` alone would not keep alive are
// added to `holders`; `outlives`: the block is used when `value` may be gone. `streams` gets the stream that a foreign
// array names. Throws UsageError if the value does not fit the parameter.
void pack_argument(PyKernel& kernel, const ParameterPlan& parameter, std::size_t index, PyObject* value,
                   runtime::Device& device, std::byte* block, std::vector<runtime::Array>& holders,
                   bool outlives = false, LaunchStreams* streams = nullptr);

// Adds the foreign arrays among the arguments of a packed launch, for users of the block after the launch.
void hold_arguments(PyKernel& kernel, std::span<PyObject* const> values, std::vector<runtime::Array>& holders);

struct Dimensions {
    std::int64_t extents[8];
    std::size_t count = 0;
    std::span<const std::int64_t> span() const { return {extents, count}; }
};

// Throws the UsageError about a launch with `given` arguments, of a kernel with parameters of these names.
[[noreturn]] void throw_wrong_count(PyKernel& kernel, std::size_t given, const std::vector<std::string>& names);
// Throws UsageError if the number of arguments is wrong.
void check_count(PyKernel& kernel, std::size_t given);

// dim=: an int, or 1 to 4 of them.
Dimensions read_dimensions(PyObject* dim);
// The dimensions of a launch; without `dim` the shape of the first array, if it fits the names that tid() is unpacked
// to.
Dimensions launch_dimensions(PyKernel& kernel, PyObject* dim, const std::byte* block);

}  // namespace weft::bindings
