// Running compiled kernels over a grid.
#pragma once

#include <cstddef>

#include "program/compiled.h"
#include "program/grid.h"

namespace weft::program {

// Runs it over the arguments in `block`, without the host's lock where that is worth it, and hands on what it printed.
// Throws UsageError (category index, runtime ...) where a check failed, what the kernel raised, and what the host does
// that wants a long launch to end (host.h). `not_finite` is told who first wrote what is not finite, where the kernel
// notes that (LoweringOptions::finite).
void run(const CompiledKernel& kernel, const std::byte* block, const Grid& grid, Fault* not_finite = nullptr);

// What machine code has printed goes to the host.
void flush_prints();

// For run(): by an entry that stands before the kernel's, with arguments of its own. `interrupted` as in
// runtime/cpu/pool.h; returns false where it answered true.
bool run_entry(const CompiledKernel& kernel, KernelEntryPoint entry, const void* arguments, const std::byte* block,
               const Grid& grid, bool (*interrupted)(), Fault* not_finite = nullptr);

}  // namespace weft::program
