// Faults of launches that the host does not wait for.
#pragma once

#include <cstddef>
#include <memory>

#include "program/kernel/compiled.h"
#include "runtime/executable.h"

namespace weft::program {

// The receiver of the fault of a launch with this argument block, if the next wait for the stream is to throw it. Null
// if the kernel cannot fail, or if the launch has to be waited for: on the host, in streams of other libraries, in
// debug mode, if an array is None, and with wp.config.verify_cuda.
std::shared_ptr<runtime::LateFault> late_fault(const CompiledKernel& kernel, const runtime::Stream& stream,
                                               const std::byte* block);

}  // namespace weft::program
