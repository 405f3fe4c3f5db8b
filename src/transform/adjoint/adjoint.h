// Reverse mode: the kernel that carries gradients from what a kernel wrote back to what it read.
//
// The adjoint of a kernel takes the same arguments. It computes the kernel's values again (the replay; nothing of the
// user's is written) and then goes through the program backwards, region by region:
//
//   straight line    each operation hands the adjoint of its result on to its operands, last one first
//   if               an if of the same condition; the chosen arm is replayed inside and reversed
//   for, while       the replay counts the iterations and keeps what they start with on a stack; the reverse runs from
//                    the last iteration to the first, each replayed inside from what the stack holds, and reversed;
//                    where a stack has no room for all iterations, it holds checkpoints (checkpoints.cpp)
//   load             adds to the element's gradient
//   store            takes the element's gradient, and leaves zero: what was there before had no part in what followed
//   atomic           adds: as a store that takes nothing away
//
// An adjoint is a value of the type of what it belongs to, with zeros where that has no derivative. Nothing has a
// special case: break, continue and early return are conditions that regions carry, locals are results of regions.
//
// The kernel itself is the primal; the gradients are its cotangents.
//
// Loads in the adjoint see memory as it was before the launch. A value that the kernel may have written itself before
// it loaded it is therefore not loaded again: to_be_recorded.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// What is known of the gradient of one array parameter when the adjoint is made.
enum class Gradient : std::uint8_t {
    none,  // there is none: nothing is computed for it
    used,
    retained,  // stores leave it as it is, for people to look at
};

struct AdjointOptions {
    std::vector<Gradient> gradients;                   // by parameter; of those that are no arrays it says nothing
    bool noalias = true;                               // array parameters do not overlap, nor their gradients
    std::int64_t stack_bytes = std::int64_t{1} << 24;  // what the stacks of one loop may take of one thread
    int order = 0;                                     // how often the adjoint will be differentiated itself
    // For targets whose threads have no stack that grows: how many iterations of one loop may keep what they start
    // with, in arrays of that size; at least 2. Empty: `stack_bytes` alone counts.
    std::optional<std::int64_t> stack_slots = {};
};

// The adjoint of `kernel` (calls inlined, simplified), not simplified. Throws CompileError, at the user's line, where
// the program has no derivative that could be computed here.
std::unique_ptr<ir::Function> adjoint(const ir::Function& kernel, const AdjointOptions& options);

// Which contents of an array, or of the arrays in a struct, an adjoint looks at, its gradient apart.
struct Contents {
    bool before = false;  // the launch
    bool after = false;
    bool within = false;  // before the launch, of arrays that lie in its elements, at any depth, and of objects
};
// By parameter.
std::vector<Contents> contents_read(const ir::Function& adjoint);

// By parameter: where all that a kernel does with an array is that each thread stores one element, which element that
// is: for each dimension the coordinate of the thread that is its index. Empty for others.
std::vector<std::vector<int>> overwritten(const ir::Function& kernel);

}  // namespace weft::transform
