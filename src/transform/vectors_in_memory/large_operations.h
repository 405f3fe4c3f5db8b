// Decides which operations on large values become loops over components.
//
// An operation on a matrix of some hundred entries would be thousands of instructions if its components were in
// registers. So values above a size never are. They lie in memory of the thread, or nowhere: then each component is
// computed at its use.
//
//     before:  %d = mul %h, %h; %e = sub %ones, %d; store %a[%i], %e
//     after:   a loop over k that stores 1 - h[k] * h[k] at %a[%i][k]
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"
#include "transform/vectors_in_memory/vectors_in_memory.h"

namespace weft::transform {

class LargeOperations {
public:
    LargeOperations(const ir::Function& function, const VectorsInMemoryOptions& options);

    bool any() const { return !in_loops_.empty(); }
    // Whether the value is large, or an operand or result of an operation that becomes a loop because of a large one.
    bool in_loops(const ir::Value* value) const { return in_loops_.contains(value); }
    // Whether the value is in loops and lies nowhere: its components are computed at their uses.
    bool is_computed(const ir::Value* value) const { return computed_.contains(value); }

    // The values in memory that a component of `value` is computed from; `value` itself if it lies in memory.
    // `in_step`: only the component at the same position is read.
    struct Source {
        const ir::Value* value;
        bool in_step;
    };
    std::vector<Source> sources(const ir::Value* value) const;

    // Whether no operand is a vector or matrix in registers.
    bool reads_components(const ir::Operation& operation) const;

    // Whether the position of a component must be known as row and column.
    bool needs_rows(const ir::Value* value) const;

private:
    void find(const ir::Function& function, int most_unrolled);
    void find_computed(const ir::Function& function, const VectorsInMemoryOptions& options);
    bool is_computed_once(const ir::Operation& operation) const;
    bool is_undisturbed(const ir::Operation& load) const;
    bool take(const ir::Value* value);

    std::unordered_set<const ir::Value*> in_loops_, computed_;
    std::unordered_map<const ir::Value*, std::vector<const ir::Operation*>> uses_;  // of values in loops
};

// Whether each component of the result depends only on the operands' components at the same position.
bool is_componentwise(ir::Op op);
// A product of a column and a row.
bool is_outer_product(const ir::Operation& operation);
// The vector whose components, in their order, an operation puts together as a column or row; else null.
const ir::Value* reshaped(const ir::Operation& operation);

}  // namespace weft::transform
