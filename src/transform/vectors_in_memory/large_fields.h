// Structs with large fields are loaded and stored field by field, and parameters are read where they lie, so that no
// operation has all of their numbers.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// True where there was one. What is put together from the fields is left to simplify().
bool split_large_structs(ir::Function& function, int most_unrolled);

// Makes a kernel read its large parameters, and large fields of its parameters, from memory: from the block of
// arguments. True where there was one.
bool read_large_parameters(ir::Function& kernel, int most_unrolled);

}  // namespace weft::transform
