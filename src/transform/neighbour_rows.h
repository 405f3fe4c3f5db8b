// Turns loops over the items of a hash grid's query into loops over rows of cells (neighbour_rows.cpp).
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// loop_over_neighbour_rows() (pipeline.h) for a kernel that is to be reversed. `counted` leaves loops that may end
// before the last item unchanged: the adjoint would go through their rows more often.
enum class NeighbourRows { all, counted };
bool loop_over_neighbour_rows(ir::Function& kernel, NeighbourRows which);

}  // namespace weft::transform
