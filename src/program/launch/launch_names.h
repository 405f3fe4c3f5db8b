// Launches with fewer dimensions than wp.tid() is unpacked to. The last names are 0 then, which some programs intend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "program/kernel/kernel.h"

namespace weft::program {

// For a launch with fewer extents than kernel.tid_names(). Debug mode throws UsageError with the line. Otherwise logs a
// warning, once a kernel, if the launch leaves out nearly all elements of an array: the kernel writes it along an axis
// at a name that is 0, and that axis has more elements.
void check_names(Kernel& kernel, bool debug, std::span<const std::int64_t> dims, const std::byte* block);

}  // namespace weft::program
