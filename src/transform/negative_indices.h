// Which choices between an index and one that counts from the end (ir/indices.h) are none, because the index is never
// negative.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// The pass: makes such choices the index itself; simplify() takes the rest away. Returns whether there were any.
bool drop_negative_indices(ir::Function& function);

// What a small loop asks in each iteration and could ask once before: if none of `starts` is negative, none of the
// indices of `choices` is. Empty where the loop has no such choice, or is too large to be written twice.
struct NegativeIndexChecks {
    std::vector<const ir::Value*> starts;  // signed integers from before the loop
    std::vector<const ir::Operation*> choices;
};
NegativeIndexChecks negative_index_checks(const ir::Operation& loop);

}  // namespace weft::transform
