// Whether one thread of a kernel may run for long, judged by its loops.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// True if some loop has no constant trip count, or takes more than about 100 us by the costs of ops.def. Loops in
// called functions do not count: each function is asked about by itself.
bool has_long_loops(const ir::Function& function);

}  // namespace weft::transform
