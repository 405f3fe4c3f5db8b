// Scalar replacement of structs (scalar_replacement.cpp).
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Makes loops and branches carry the fields of structs instead of the structs.
void replace_structs_by_fields(ir::Function& function);

}  // namespace weft::transform
