// Decides which values of a function share one place in memory.
//
// A large vector whose components are chosen at run time cannot stay in registers. Each choice would compare with every
// position, and each branch and loop would carry every component. In memory it is a variable again, as the user wrote
// it. Values become one variable if they are versions of each other: operand and result of an insert, values that a
// branch yields or a loop carries. No version may be needed still when the next one is written.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"
#include "transform/vectors_in_memory/large_operations.h"

namespace weft::transform {

struct MemorySlots {
    std::vector<Type> types;  // of the values at each place
    // The place of each value that has one.
    std::unordered_map<const ir::Value*, int> of;

    // -1 for values that stay in registers.
    int slot(const ir::Value* value) const {
        const auto found = of.find(value);
        return found == of.end() ? -1 : found->second;
    }
};

// Assigns places to values in memory. Vectors and matrices of more than `most_in_registers` components have one if they
// are indexed at run time. So have operands and results of operations in loops that are not computed at their uses.
//
// Between the write of a value and its use, nothing else is written to its place. If a value has a place, so has its
// version in the result of a branch or the argument of a loop; the value is copied if the two places differ. The copies
// at the start of a loop may be done one after the other. Those of one yield may not: an earlier copy may overwrite the
// source of a later one, for example if two values are exchanged in each iteration.
MemorySlots assign_memory_slots(const ir::Function& function, int most_in_registers, const LargeOperations& operations);

}  // namespace weft::transform
