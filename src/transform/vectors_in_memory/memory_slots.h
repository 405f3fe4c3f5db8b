// Which values of a function share one place in memory.
//
// A large vector whose components are chosen at run time cannot stay in registers: each choice would compare with every
// position, and each branch and loop would carry every component. In memory it is a variable again, as the user wrote
// it. Values become one variable where they are versions of each other (what an insert makes of its operand, what a
// branch yields, what a loop carries) and no version is still needed when the next one is written.
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
    int place(const ir::Value* value) const {
        const auto found = of.find(value);
        return found == of.end() ? -1 : found->second;
    }
};

// Promises: where a value is used, nothing has been written to its place since the value was. What a branch or a loop
// makes of a value that has a place has one too; it may be another one, and then the value is copied. Copying those of
// one loop's start one after the other destroys none that is copied later. What a yield hands on may be what an earlier
// copy of that yield writes to: where two values change places in each iteration.
// Vectors and matrices of more components than `most_in_registers` that are indexed at run time have a place, and those
// of operations in loops that are not computed where they are used.
MemorySlots assign_memory_slots(const ir::Function& function, int most_in_registers, const LargeOperations& operations);

}  // namespace weft::transform
