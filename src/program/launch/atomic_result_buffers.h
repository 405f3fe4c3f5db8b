// The results of a recorded launch's atomics, kept for the adjoint (transform/adjoint/atomic_results.h): arrays in the
// order of the kernel's implicit parameters.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "program/kernel/compiled.h"
#include "runtime/array.h"

namespace weft::program {

// Empty arrays, for a grid of this shape as the kernel sees it. Logs have as many entries as
// wp.config.gradient_log_bytes allows; the system commits only the pages that are used.
std::vector<runtime::Array> open_atomic_results(const std::vector<KernelFacts::AtomicResult>& kinds,
                                                std::span<const std::int64_t> shape, runtime::Device& device);

// Cuts logs to the entries used, after the launch. Throws UsageError, which names the kernel `name`, if one was too
// short.
void close_atomic_results(const std::string& name, const CompiledKernel& compiled, std::span<runtime::Array> returned);

}  // namespace weft::program
