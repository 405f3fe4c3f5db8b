// Conversions between the kinds of numbers, of one thread or of each lane.
//
// Floats of 8 and 16 bits are integers in registers and are computed with as float32. The rules between the two are the
// templates of types/float_format.h, shared by the host and compiled code; here they emit instructions.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/target.h"
#include "types/type.h"

namespace weft::codegen {

// The type of a number in a register: bool is i1, floats of 8 and 16 bits are i8 and i16.
llvm::Type* register_type(llvm::LLVMContext& context, Scalar scalar);

// Writes at the position of the builder, which must outlive it.
class Conversions {
public:
    Conversions(llvm::IRBuilder<>& builder, const Machine& machine)
        : builder_(builder), half_conversions_(machine.half_conversions), ptx_conversions_(machine.ptx_conversions) {}

    // As weft::convert() does on the host.
    llvm::Value* cast(llvm::Value* a, Scalar from, Scalar to);
    // From the bits of a small float to a float32, and back.
    llvm::Value* widen(llvm::Value* bits, Scalar from);
    llvm::Value* narrow(llvm::Value* a, Scalar to);

private:
    llvm::Value* saturate(llvm::Value* a, Scalar to);
    llvm::Value* saturate_by_ptx(llvm::Value* a, Scalar from, Scalar to);
    llvm::Value* round_to_odd(llvm::Value* a, bool is_signed = true);

    llvm::IRBuilder<>& builder_;
    const bool half_conversions_, ptx_conversions_;
};

}  // namespace weft::codegen
