// Drops choices between an index and the same index counted from the end if the index is never negative.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Replaces such choices by the index itself; simplify() removes the rest. True if there were any.
bool drop_negative_indices(ir::Function& function);

}  // namespace weft::transform
