// Called by compiled debug kernels: records a failed check (types/layout.h, Fault).
#pragma once

#include <cstdint>

#include "binary/cpu_abi.h"

namespace weft {
// Of the thread with this number in the grid, row-major over context.dim.
void thread_coordinates(const LaunchContext& context, std::int64_t thread, std::int64_t (&coordinates)[kMaxDims]);
}  // namespace weft

// For `raise`. The text is that of format_text() (runtime/print.h), cut to fit the record.
extern "C" void weft_raise(const weft::LaunchContext* context, std::int64_t thread, std::int32_t site,
                           const char* format, const std::int64_t* words, std::int64_t count) noexcept;
// NaNs and infinities are noted in a separate record. `thread` is the row-major number of the thread in context->dim.
// The first caller of a launch wins; later calls change nothing. Does nothing if the context has no record.
extern "C" void weft_fault(const weft::LaunchContext* context, std::int32_t kind, std::int64_t thread,
                           std::int64_t index, std::int64_t size, std::int32_t axis, std::int32_t site) noexcept;
