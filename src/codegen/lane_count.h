// How many threads of a kernel run at once where the caller does not say: from what its arithmetic and its memory look
// like, and the width of the machine's registers. Plain arithmetic on the IR; nothing is measured.
#pragma once

#include "codegen/emitter.h"
#include "ir/ir.h"

namespace weft::codegen {

// A power of two. 1 where lanes would cost more than they save. `short_rows`: Options::short_rows.
int preferred_lanes(const ir::Function& kernel, const Machine& machine, bool short_rows);

}  // namespace weft::codegen
