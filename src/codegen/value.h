// An IR value in LLVM IR: its flat list of leaves (types/leaves.h). Each leaf is
//   uniform   one LLVM scalar, equal in every active lane
//   linear    one LLVM scalar, that of lane 0, and a constant step from lane to lane (integers; the data pointers of
//             local arrays, in bytes)
//   varying   a <W x T>
// Scalars in registers: bool is i1, floats of 8 and 16 bits are i8 and i16 (arithmetic widens them to float and rounds
// back).
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Value.h>

#include <cstdint>
#include <vector>

#include "binary/cpu_abi.h"
#include "transform/analysis/underlying_memory.h"
#include "types/leaves.h"
#include "types/type.h"

namespace llvm {
class BasicBlock;
}

namespace weft::codegen {

struct Leaf {
    llvm::Value* scalar = nullptr;  // uniform and linear
    llvm::Value* vector = nullptr;  // varying; for the others a copy that is valid in `vector_block`, or null
    std::int64_t step = 0;          // linear: the difference between neighbouring lanes
    // A uniform or linear i32 computed in 64 bits without wrapping, for addresses. See emit_scalar.cpp.
    llvm::Value* wide = nullptr;
    llvm::BasicBlock* vector_block = nullptr;

    bool varying() const { return scalar == nullptr; }
    bool uniform() const { return scalar != nullptr && step == 0; }
    bool linear() const { return scalar != nullptr && step != 0; }

    static Leaf of_scalar(llvm::Value* value) { return {.scalar = value}; }
    static Leaf of_linear(llvm::Value* value, std::int64_t step) { return {.scalar = value, .step = step}; }
    static Leaf of_vector(llvm::Value* value) { return {.vector = value}; }
};

// The memory that an array value refers to; alias metadata is made from it.
using MemoryRoot = transform::Memory;

struct LaneValue {
    Type type;
    llvm::SmallVector<Leaf, 4> leaves;
    MemoryRoot root;  // arrays only
};

}  // namespace weft::codegen
