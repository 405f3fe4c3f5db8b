// Elements of tiles that are computed at their only use, so that a chain of maps is one loop.
#pragma once

#include <unordered_set>

#include "ir/ir.h"

namespace weft::transform {

// Moves a tile_generate into the region of a later tile operation, if it is used there only, once for each element, and
// no write lies between. Returns those that are operands of one tile_reduce and may be computed in its loop.
std::unordered_set<const ir::Operation*> fuse_tiles(ir::Function& function);

}  // namespace weft::transform
