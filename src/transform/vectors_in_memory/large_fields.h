// Structs with large fields are loaded and stored field by field, and large parameters are read from memory. So no
// operation has all of their numbers.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// True if there was such a struct. Values put together from fields are left to simplify().
bool split_large_structs(ir::Function& function, int most_unrolled);

// Makes a kernel read its large parameters, and large fields of its parameters, from the argument block in memory. True
// if there was one.
bool read_large_parameters(ir::Function& kernel, int most_unrolled);

}  // namespace weft::transform
