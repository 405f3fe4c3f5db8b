// Running compiled kernels over a grid.
#pragma once

#include <cstddef>

#include "program/compiled.h"
#include "program/grid.h"

namespace weft::program {

// Puts it into the stream with the arguments in `block`, without the host's lock where that is worth it; where somebody
// has to be told what happened in it, waits for that and hands it on: what it printed, what failed. Throws UsageError
// (category index, runtime ...) where a check failed, what the kernel raised, and what the host does that wants a long
// launch to end (host.h). `not_finite` is told who first wrote what is not finite, where the kernel notes that
// (PassOptions::nan_check).
void run(const CompiledKernel& kernel, runtime::Stream& stream, const std::byte* block, const Grid& grid,
         Fault* not_finite = nullptr);

// Whether run() gives up the host's lock meanwhile.
bool runs_without_host(const CompiledKernel& kernel, const Grid& grid);

// What machine code has printed goes to the host.
void flush_prints();

}  // namespace weft::program
