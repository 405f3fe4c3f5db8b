// Reverse mode: the kernel that carries gradients of written arrays back to the arrays that were read.
//
// The adjoint of a kernel takes the same arguments. It first computes the kernel's values again (the replay), without
// writing the user's memory. Then it goes through the program backwards, region by region:
//
//   straight line    each operation hands the adjoint of its result on to its operands, last one first
//   if               an if of the same condition; the chosen arm is replayed inside and reversed
//   for, while       the replay counts the iterations and keeps their initial states on a stack; the reverse runs from
//                    the last iteration to the first, each replayed inside from its stacked state, and reversed;
//                    if a stack has no room for all iterations, it holds checkpoints (checkpoints.cpp)
//   load             adds to the element's gradient
//   store            takes the element's gradient, and leaves zero: later code did not depend on the earlier contents
//   atomic           adds: as a store that takes nothing away
//
// An adjoint has the type of its value, with zeros in parts without a derivative. Control flow has no special cases:
// break, continue and early return are conditions that regions carry, and locals are results of regions.
//
// The kernel itself is the primal; the gradients are its cotangents.
//
// Loads in the adjoint see memory as it was before the launch. So a value that the kernel may have written before it
// loaded it is not loaded again: to_be_recorded.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// The gradient of one array parameter, as known when the adjoint is made.
enum class Gradient : std::uint8_t {
    none,  // no code is made for it
    used,
    retained,  // stores leave it unchanged, so that users can inspect it
};

struct AdjointOptions {
    std::vector<Gradient> gradients;                   // by parameter; unused for those that are no arrays
    bool noalias = true;                               // array parameters do not overlap, nor their gradients
    std::int64_t stack_bytes = std::int64_t{1} << 24;  // the most memory that the stacks of one loop take per thread
    int order = 0;                                     // how often the adjoint will be differentiated itself
    // For targets whose threads have no growing stack: how many iterations of one loop may keep their initial state, in
    // arrays of that size; at least 2. If empty, `stack_bytes` alone limits them.
    std::optional<std::int64_t> stack_slots = {};
};

// The adjoint of `kernel` (calls inlined, simplified), not simplified. Throws CompileError, at the user's line, if the
// derivative cannot be computed.
std::unique_ptr<ir::Function> adjoint(const ir::Function& kernel, const AdjointOptions& options);

// The contents of an array, or of the arrays in a struct, that an adjoint reads, apart from gradients.
struct Contents {
    bool before = false;  // the launch
    bool after = false;
    bool within = false;  // before the launch: arrays in its elements, at any depth, and objects
};
// By parameter.
std::vector<Contents> contents_read(const ir::Function& adjoint);

// By parameter: the coordinate of the thread at each dimension, for an array that the kernel uses only to store one
// element per thread. Empty for others.
std::vector<std::vector<int>> overwritten(const ir::Function& kernel);

}  // namespace weft::transform
