// Staged expressions (ir/expression.h) as the table of builtins uses them.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "builtins/registry.h"
#include "ir/expression.h"
#include "ir/large.h"

namespace weft::builtins {

using namespace ir::staged;

// ---- the arguments of a call ----
inline E argument(const Call& call, std::size_t i) { return {call.builder, call.arguments[i]}; }

// The first index in [begin, end) of a sorted one-dimensional array whose element is not below `value`; end where there
// is none. Indices are int32.
E lower_bound(E array, E begin, E end, E value);

// What a loop over the components of a vector or matrix makes of `start`, where an operation for each of them would be
// too many: `step` gets what is carried, and the indices of a component.
using OverComponents = std::function<std::vector<ir::Value*>(const std::vector<ir::Value*>& carried,
                                                             const std::vector<ir::Value*>& indices)>;
inline bool needs_loop(E a) { return a.components() > ir::kMostUnrolled; }
inline std::vector<ir::Value*> over_components(E a, std::vector<ir::Value*> start, const OverComponents& step,
                                               std::vector<ir::Value*> indices = {}) {
    ir::Builder& builder = a.builder();
    const Type type = a.type();
    if (indices.size() == (type.is_matrix() ? 2U : 1U)) return step(start, indices);
    ir::Value *const lo = builder.integer(0), *const hi = builder.integer(indices.empty() ? type.rows() : type.cols());
    ir::Operation* loop = builder.for_(lo, hi, builder.integer(1), std::move(start));
    ir::Builder::Inside inside(builder, loop->body());
    const std::vector<ir::Value*>& arguments = loop->body().arguments;
    indices.push_back(arguments[0]);
    builder.yield(over_components(a, {arguments.begin() + 1, arguments.end()}, step, std::move(indices)));
    return loop->results;
}

}  // namespace weft::builtins
