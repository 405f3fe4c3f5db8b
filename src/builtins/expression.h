// Staged expressions (ir/expression.h) as the table of builtins uses them.
#pragma once

#include "builtins/registry.h"
#include "ir/expression.h"

namespace weft::builtins {

using namespace ir::staged;

// ---- the arguments of a call ----
inline E argument(const Call& call, std::size_t i) { return {call.builder, call.arguments[i]}; }

// The first index in [begin, end) of a sorted one-dimensional array whose element is not below `value`; end where there
// is none. Indices are int32.
E lower_bound(E array, E begin, E end, E value);

}  // namespace weft::builtins
