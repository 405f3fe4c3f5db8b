// Loops over what a query of a hash grid gives, as loops over rows of it (neighbour_rows.cpp).
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// loop_over_neighbour_rows() (pipeline.h) for a kernel that is to be reversed: `counted` leaves loops that may end
// before the last item, whose rows the adjoint would go through more often.
enum class NeighbourRows { all, counted };
bool loop_over_neighbour_rows(ir::Function& kernel, NeighbourRows which);

}  // namespace weft::transform
