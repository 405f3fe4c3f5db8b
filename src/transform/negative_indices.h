// Finds redundant choices between an index and the same index counted from the end (ir/indices.h): a choice is
// redundant if the index is never negative.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// The pass: replaces such choices by the index itself; simplify() removes the rest. True if there were any.
bool drop_negative_indices(ir::Function& function);

// Tests that a small loop does in each iteration and could do once before: if none of `starts` is negative, none of the
// indices of `choices` is. Empty if the loop has no such choice, or is too large to be written twice.
struct NegativeIndexChecks {
    std::vector<const ir::Value*> starts;  // signed integers from before the loop
    std::vector<const ir::Operation*> choices;
};
NegativeIndexChecks negative_index_checks(const ir::Operation& loop);

}  // namespace weft::transform
