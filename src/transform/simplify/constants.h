// The numbers of constants.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// The numbers of a constant; null for any other value.
const std::vector<Number>* constant_numbers(const ir::Value* value);
// The number that all components of a constant share; null if they differ or it is no constant.
const Number* uniform_constant(const ir::Value* value);

}  // namespace weft::transform
