// Large vectors in the memory of a thread: a value in registers cannot be indexed at run time, and one of some hundred
// components would be as many instructions at each use.
#pragma once

#include "ir/ir.h"
#include "ir/unroll_limit.h"

namespace weft::transform {

inline constexpr int kMostInRegisters = 16;  // components

struct VectorsInMemoryOptions {
    int most_in_registers = kMostInRegisters;  // of vectors that are indexed at run time
    int most_unrolled = ir::kMostUnrolled;     // above it, all operations are loops
    bool noalias = true;                       // arrays that are written overlap no others
    bool checks_parts = false;                 // indices of components are checked: only values in loops then move
};

// Gives large vectors that are indexed at run time a place in memory, and turns operations on still larger values into
// loops over components. True if there was one.
bool keep_vectors_in_memory(ir::Function& function, const VectorsInMemoryOptions& options = {});

}  // namespace weft::transform
