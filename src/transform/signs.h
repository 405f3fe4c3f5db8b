// The pass that leaves out what makes indices count from the end, where they are never negative (ir/indices.h).
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Makes choices between an index and one that counts from the end the index itself; simplify() takes the rest away.
// Returns whether there were any.
bool drop_signs(ir::Function& function);

}  // namespace weft::transform
