// Loops over the components of large vectors and matrices.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/loop_builder.h"
#include "ir/unroll_limit.h"

namespace weft::ir {

// Runs a loop over the components of a vector or matrix of this type, for types with too many components to unroll.
// `step` gets the carried values, at first `start`, and the indices of a component. Returns the last carried values.
using OverComponents =
    std::function<std::vector<Value*>(const std::vector<Value*>& carried, const std::vector<Value*>& indices)>;
inline std::vector<Value*> over_components(Builder& builder, Type type, std::vector<Value*> start,
                                           const OverComponents& step, std::vector<Value*> indices = {}) {
    if (indices.size() == (type.is_matrix() ? 2U : 1U)) return step(start, indices);
    Value *const lo = builder.integer(0), *const hi = builder.integer(indices.empty() ? type.rows() : type.cols());
    return build_for(builder, lo, hi, builder.integer(1), std::move(start), [&](Value* index, const auto& carried) {
        indices.push_back(index);
        return over_components(builder, type, carried, step, std::move(indices));
    });
}

}  // namespace weft::ir
