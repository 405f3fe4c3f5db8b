// Tiles as vectors and loops, for a block of one thread.
//
// A tile of scalars becomes a vector of as many components, one of vectors or matrices a matrix with a row for each
// element, and one of structs several of these, one for each field. A tile of one element is the element.
//
//     %t = tile.generate [64] (%i) : tile<f32, 64> { %x = load %a[%i]; yield %x }
//
//     %t = for %i = 0 to 64 step 1 carry (%v = 0) { %x = load %a[%i]; %w = insert_at %v[%i], %x; yield %w }
//
// Derivatives are made of these loops, as of those of the user. transform/vectors_in_memory gives long vectors their
// memory.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Replaces all operations on tiles, and tiles among the parameters and results of functions.
void lower_tiles(ir::Module& module);

}  // namespace weft::transform
