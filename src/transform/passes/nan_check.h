// Checks of each write for NaN and infinity (wp.config.verify_fp): the pass `nan_check`.
// program/launch/nan_check.h reports them.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Inserts a check at each store and atomic, which notes whether an element stops being finite.
void insert_nan_checks(ir::Function& kernel);

}  // namespace weft::transform
