// How a failing check in a debug kernel is recorded (types/layout.h, Fault): called by compiled code.
#pragma once

#include <cstdint>

#include "binary/cpu_abi.h"

// `raise`: the text is `format`, in printf's manner, of the arguments that follow.
extern "C" void weft_raise(const weft::LaunchContext* context, std::int64_t thread, std::int32_t site,
                           const char* format, ...) noexcept __attribute__((format(printf, 4, 5)));
// Notes of what is not finite go to a record of their own. `thread` is the number of the thread in the grid, row-major
// over context->dim. The first caller of a launch wins; later ones change nothing. Does nothing where the context has
// no fault record.
extern "C" void weft_fault(const weft::LaunchContext* context, std::int32_t kind, std::int64_t thread,
                           std::int64_t index, std::int64_t size, std::int32_t axis, std::int32_t site) noexcept;
