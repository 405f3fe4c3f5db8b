// Loops over what a query of a hash grid gives, as loops over runs of it (runs.cpp).
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// loop_over_runs() (pipeline.h) for a kernel that is to be reversed: `counted` leaves loops that may end before the
// last item, whose rows the adjoint would go through more often.
enum class Runs { all, counted };
bool loop_over_runs(ir::Function& kernel, Runs which);

}  // namespace weft::transform
