// Vectors of W lanes: numbers, bools and masks.
//
// A compare makes a vector of bools in a register as wide as the compared numbers, all ones or all zeros. Inside one
// block LLVM's instruction selection keeps it there. From block to block (a mask computed before a branch, a loop's
// mask) it would narrow <8 x i1> to eight 16-bit numbers and widen it again at every use. So a vector of bools crosses
// blocks in packed form: sign-extended to the width of a register and held as floats behind an arithmetic fence. No
// pass looks through the fence, and it costs no instruction. Machines with mask registers need none of this.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <utility>

#include "codegen/target.h"

namespace weft::codegen {

// Writes at the position of the builder, which must outlive it.
class Lanes {
public:
    Lanes(llvm::IRBuilder<>& builder, int count, const Machine& machine)
        : count(count), builder_(builder), mask_registers_(machine.mask_registers), vector_bits_(machine.vector_bits) {}

    const int count;  // W

    llvm::Type* of(llvm::Type* scalar) const;  // the vector type
    llvm::Value* splat(llvm::Value* scalar);
    llvm::Value* iota(llvm::Type* integer) const;  // 0, 1, 2, ...
    // The same numbers behind a fence, which no pass looks through.
    llvm::Value* behind_fence(llvm::Value* vector);

    // ---- vectors of bools ----
    // Whether vectors of this type cross blocks in packed form.
    bool packs(llvm::Type* type) const;
    llvm::Value* pack(llvm::Value* bools);
    llvm::Value* unpack(llvm::Value* packed);
    // The value for use in the current block: a vector of bools of another block crosses in packed form.
    llvm::Value* here(llvm::Value* value);
    llvm::Value* spread_bool(llvm::Value* scalar);
    llvm::Value* logic(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b);
    // condition ? a : b, all three vectors of bools.
    llvm::Value* choose(llvm::Value* condition, llvm::Value* a, llvm::Value* b);

    // ---- masks; null stands for all lanes ----
    llvm::Value* both(llvm::Value* mask, llvm::Value* condition);
    llvm::Value* any(llvm::Value* mask);   // whether some lane is on
    llvm::Value* bits(llvm::Value* mask);  // an integer, one bit per lane
    struct MaskNumbers {
        llvm::Value* bits = nullptr;     // an integer, one bit per lane
        llvm::Value* is_full = nullptr;  // whether all lanes are on
    };
    // The mask as integers, computed once, directly behind its definition.
    MaskNumbers numbers(llvm::Value* mask);

private:
    void stand_after(llvm::Instruction* instruction);

    llvm::IRBuilder<>& builder_;
    const bool mask_registers_;
    const int vector_bits_;
    std::map<llvm::Value*, MaskNumbers> mask_numbers_;
    std::map<llvm::Value*, llvm::Value*> packed_;
    std::map<std::pair<llvm::Value*, llvm::BasicBlock*>, llvm::Value*> unpacked_;
};

}  // namespace weft::codegen
