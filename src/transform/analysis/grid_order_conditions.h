// The conditions under which the threads of a kernel may run in the order of a hash grid
// (transform/passes/follow_grid_order.cpp, program/launch/grid_order.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// How the order of threads shows: only by the rounding of float sums, or by other results too.
//
// The order shows nowhere else under three conditions. No thread reads an element that another one writes. Several
// threads write an element only by atomics of one kind whose results are unused. No thread reports anything. Calls must
// be inlined; parameters must not overlap, and different indices must be different elements.
enum class OrderShows { nowhere, in_rounding, in_results };
OrderShows order_shows(const ir::Function& kernel);

// A query of a hash grid at a position that each thread of a launch computes from an element of its own: points[tid].
struct OwnQuery {
    // A parameter and, if it is a struct, the fields that lead from it.
    struct ParameterField {
        int parameter;
        std::vector<std::int64_t> fields;
        bool operator==(const ParameterField&) const = default;
    };
    ParameterField id, points;
    std::vector<std::int64_t> fields;  // from an element of `points` to the vector
    Type point_type;                   // vec3 of some float

    bool operator==(const OwnQuery&) const = default;
};
// Empty if the value is neither a parameter nor a part of one.
std::optional<OwnQuery::ParameterField> part_of(const ir::Function& kernel, const ir::Value* value);
// The queries of a kernel with one coordinate, each once, if parameters give the ids of their grids.
std::vector<OwnQuery> own_queries(const ir::Function& kernel);

}  // namespace weft::transform
