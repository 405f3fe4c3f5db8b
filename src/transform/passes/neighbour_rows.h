// Loops over the rows of cells of a hash grid's query (neighbour_rows.cpp).
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Makes loops over the items of a hash grid's query loops over its rows of cells, with inner loops over the items of a
// row. True if there was one. Code for lanes is quicker for it; scalar code may be slower.
//
// `counted`, for a kernel that is to be reversed, leaves loops that may end before the last item unchanged: the adjoint
// would go through their rows more often.
enum class NeighbourRows { all, counted };
bool loop_over_neighbour_rows(ir::Function& kernel, NeighbourRows which);

}  // namespace weft::transform
