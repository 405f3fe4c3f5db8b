// What is asked of a kernel before its threads may run in the order of a hash grid (transform/follow_grid_order.cpp,
// program/grid_order.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// By what one can tell in which order the threads ran: by how sums of floats are rounded, or by more.
//
// Nothing else shows it where no thread reads what another one writes, none writes where another one does but by
// atomics of one kind whose results nobody uses, and none reports anything. Calls must be inlined. Parameters must not
// overlap, and different indices be different elements.
enum class OrderShows { nowhere, in_rounding, in_results };
OrderShows order_shows(const ir::Function& kernel);

// A query of a hash grid whose place each thread of a launch computes from an element of its own: points[tid].
struct OwnQuery {
    // A parameter and the fields that lead from it, where it is a struct.
    struct ParameterField {
        int parameter;
        std::vector<std::int64_t> fields;
        bool operator==(const ParameterField&) const = default;
    };
    ParameterField id, points;
    std::vector<std::int64_t> fields;  // from an element of these to the vector
    Type place;                        // vec3 of some float

    bool operator==(const OwnQuery&) const = default;
};
// Empty where the value is no parameter, and not in one.
std::optional<OwnQuery::ParameterField> part_of(const ir::Function& kernel, const ir::Value* value);
// Those of a kernel with one coordinate whose grids are named by parameters, each once.
std::vector<OwnQuery> own_queries(const ir::Function& kernel);

}  // namespace weft::transform
