// Checks of each write for NaN and infinity (wp.config.verify_fp): the pass `nan_check`.
// program/launch/nan_check.h reports them.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Instruments stores and atomics to note whether an element stops being finite.
void instrument_nan_check(ir::Function& kernel);

}  // namespace weft::transform
