// Finds redundant choices between an index and the same index counted from the end (ir/indices.h): a choice is
// redundant if the index is never negative.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// Calls `found` for each redundant choice of the function, in order. It may change the operands of the choice.
using OnRedundantChoice = std::function<void(ir::Operation& choice)>;
void find_redundant_choices(ir::Function& function, const OnRedundantChoice& found);

// Tests that a small loop does in each iteration and could do once before: if none of `starts` is negative, none of the
// indices of `choices` is. Empty if the loop has no such choice, or is too large to be written twice.
struct NegativeIndexChecks {
    std::vector<const ir::Value*> starts;  // signed integers from before the loop
    std::vector<const ir::Operation*> choices;
};
NegativeIndexChecks negative_index_checks(const ir::Operation& loop);

// Choices by the extent of an array whose results are only indices of accesses. Another form may take their place whose
// result differs for indices out of range.
std::unordered_set<const ir::Operation*> choices_of_accesses(const ir::Function& function);

}  // namespace weft::transform
