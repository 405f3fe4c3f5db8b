// Structs with large fields are loaded and stored field by field, so that no operation has all of their numbers.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// True where there was one. What is put together from the fields is left to simplify().
bool split_large_structs(ir::Function& function, int most_unrolled);

}  // namespace weft::transform
