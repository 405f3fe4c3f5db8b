// The functions of math.def.
#pragma once

#include "ir/ir.h"

namespace weft::codegen {

bool is_library_math(ir::Op op);

}  // namespace weft::codegen
