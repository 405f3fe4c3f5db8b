// Launch commands: wp.Launch, the result of wp.launch(..., record_cmd=True).
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "bindings/kernels/arguments.h"
#include "runtime/array.h"

namespace weft::bindings {

// A command for a launch that has been packed into a block. Of `blocks`, block_dim and max_blocks count.
nb::object make_launch_command(nb::object kernel, std::vector<std::byte> block, Dimensions dims,
                               std::vector<nb::object> arguments, std::vector<runtime::Array> holders,
                               runtime::Device& device, const program::Grid& blocks);

void bind_launch_command(nb::module_& m);

}  // namespace weft::bindings
