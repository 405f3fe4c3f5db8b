// Whether one thread of a kernel may run for long, by the loops in its text.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// True if some loop has no constant number of iterations, or takes more than about 100 us by the costs of ops.def.
// Loops in functions that it calls do not count: they are asked about by themselves.
bool has_long_loops(const ir::Function& function);

}  // namespace weft::transform
