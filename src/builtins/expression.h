// Staged expressions (ir/expression.h) as the table of builtins uses them.
#pragma once

#include <utility>
#include <vector>

#include "builtins/entry.h"
#include "ir/component_loops.h"
#include "ir/expression.h"

namespace weft::builtins {

using namespace ir::staged;

// ---- the arguments of a call ----
inline E argument(const Call& call, std::size_t i) { return {call.builder, call.arguments[i]}; }

// The first index in [begin, end) of a sorted one-dimensional array whose element is not below `value`, or end if there
// is none. Indices are int32.
E lower_bound(E array, E begin, E end, E value);

// Whether the value has too many components for one operation each, so that a loop runs over them.
inline bool needs_loop(E a) { return a.components() > ir::kMostUnrolled; }
inline std::vector<ir::Value*> over_components(E a, std::vector<ir::Value*> start, const ir::OverComponents& step) {
    return ir::over_components(a.builder(), a.type(), std::move(start), step);
}

}  // namespace weft::builtins
