// What a recorded launch keeps of its atomics, for the adjoint (transform/adjoint/atomic_results.h): arrays in the
// order of the kernel's implicit parameters.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "program/compiled.h"
#include "runtime/array.h"

namespace weft::program {

// Empty ones, for a grid of this shape as the kernel sees it. Logs have as many entries as wp.config.gradient_log_bytes
// allows; the system gives memory for those that are used.
std::vector<runtime::Array> open_atomic_results(const std::vector<KernelFacts::AtomicResult>& kinds,
                                                std::span<const std::int64_t> shape, runtime::Device& device);

// After the launch: logs become as long as they need be. Throws UsageError where one was too short; `name` is the
// kernel's.
void close_atomic_results(const std::string& name, const CompiledKernel& compiled, std::span<runtime::Array> returned);

}  // namespace weft::program
