// Running compiled kernels over a grid.
#pragma once

#include <cstddef>

#include "program/kernel/compiled.h"
#include "program/kernel/grid.h"

namespace weft::program {

// Enqueues the launch with the arguments in `block`, without the host's lock if it is long enough. If the kernel can
// fail and the fault is not a late one (late_fault.h), waits, forwards output and throws. UsageError (category index,
// runtime ...) is thrown for a failed check and for exceptions that the kernel raises; a host that interrupts a long
// launch throws its own exception (host.h). `not_finite` gets the first write of a NaN or infinity, if the kernel notes
// it (PassOptions::nan_check).
void run(const CompiledKernel& kernel, runtime::Stream& stream, const std::byte* block, const Grid& grid,
         Fault* not_finite = nullptr);

// Whether run() gives up the host's lock for this launch.
bool runs_without_host(const CompiledKernel& kernel, const Grid& grid);

}  // namespace weft::program
