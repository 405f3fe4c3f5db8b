// What a recorded launch keeps of its atomics, for the adjoint (transform/adjoint/record.h): arrays in a Python list,
// in the order of the kernel's extras.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/kernel.h"
#include "program/module.h"

namespace weft::bindings {

// Empty ones, for a grid of this shape as the kernel sees it. Logs have as many entries as wp.config.gradient_log_bytes
// allows; the system gives memory for those that are used.
nb::list open_records(const std::vector<program::AdjointReads::Record>& kinds, std::span<const std::int64_t> shape,
                      runtime::Device& device);

// After the launch: logs become as long as they need be. Throws UsageError where one was too short.
void close_records(const PyKernel& kernel, const program::CompiledKernel& compiled, nb::list records);

std::vector<ArrayView> views_of(nb::list arrays);

}  // namespace weft::bindings
