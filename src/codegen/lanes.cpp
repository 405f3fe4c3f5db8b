#include "codegen/lanes.h"

namespace weft::codegen {

llvm::Type* Lanes::of(llvm::Type* scalar) const {
    return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(count));
}

llvm::Value* Lanes::splat(llvm::Value* scalar) {
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(scalar))
        return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(count)), constant);
    return builder_.CreateVectorSplat(static_cast<unsigned>(count), scalar);
}

llvm::Value* Lanes::iota(llvm::Type* integer) const {
    llvm::SmallVector<llvm::Constant*, 16> elements;
    for (int lane = 0; lane < count; ++lane)
        elements.push_back(llvm::ConstantInt::get(integer, static_cast<std::uint64_t>(lane)));
    return llvm::ConstantVector::get(elements);
}

bool Lanes::packs(llvm::Type* type) const {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector && vector->getElementType()->isIntegerTy(1) && !mask_registers_;
}

// Moves the builder to the first point at which the instruction's value is available.
void Lanes::stand_after(llvm::Instruction* instruction) {
    llvm::BasicBlock* block = instruction->getParent();
    if (llvm::isa<llvm::PHINode>(instruction))
        builder_.SetInsertPoint(block, block->getFirstNonPHIIt());
    else
        builder_.SetInsertPoint(block, std::next(instruction->getIterator()));
}

llvm::Value* Lanes::pack(llvm::Value* bits) {
    if (auto known = packed_.find(bits); known != packed_.end()) return known->second;
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(bits)) stand_after(instruction);
    bool wide = count * 32 < vector_bits_;
    llvm::Type* integer = of(wide ? builder_.getInt64Ty() : builder_.getInt32Ty());
    llvm::Type* number = of(wide ? builder_.getDoubleTy() : builder_.getFloatTy());
    llvm::Value* result = builder_.CreateBitCast(builder_.CreateSExt(bits, integer), number);
    if (!llvm::isa<llvm::Constant>(result)) result = builder_.CreateArithmeticFence(result, number);
    packed_[bits] = result;
    return result;
}

llvm::Value* Lanes::unpack(llvm::Value* packed) {
    auto* number = llvm::cast<llvm::FixedVectorType>(packed->getType());
    llvm::Type* integer = of(builder_.getIntNTy(number->getScalarSizeInBits()));
    llvm::Value* bits =
        builder_.CreateICmpSLT(builder_.CreateBitCast(packed, integer), llvm::Constant::getNullValue(integer));
    if (!llvm::isa<llvm::Constant>(bits)) packed_[bits] = packed;
    return bits;
}

// A vector whose bits do not fill whole floats is widened for the fence.
llvm::Value* Lanes::behind_fence(llvm::Value* vector) {
    auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
    unsigned bits = type->getScalarSizeInBits() * type->getNumElements();
    if (bits % 32 != 0) {
        llvm::Value* wide =
            builder_.CreateZExt(builder_.CreateBitCast(vector, of(builder_.getIntNTy(type->getScalarSizeInBits()))),
                                of(builder_.getInt32Ty()));
        llvm::Value* narrow =
            builder_.CreateTrunc(behind_fence(wide), of(builder_.getIntNTy(type->getScalarSizeInBits())));
        return builder_.CreateBitCast(narrow, type);
    }
    bool doubles = type->getScalarSizeInBits() == 64;
    llvm::Type* number = llvm::FixedVectorType::get(doubles ? builder_.getDoubleTy() : builder_.getFloatTy(),
                                                    bits / (doubles ? 64 : 32));
    llvm::Value* fenced = builder_.CreateArithmeticFence(builder_.CreateBitCast(vector, number), number);
    return builder_.CreateBitCast(fenced, type);
}

// A uniform bool for all lanes, spread in packed form: a broadcast of i1 would go through bytes.
llvm::Value* Lanes::spread_bool(llvm::Value* scalar) {
    bool wide = count * 32 < vector_bits_;
    llvm::Type* integer = wide ? builder_.getInt64Ty() : builder_.getInt32Ty();
    llvm::Type* number = wide ? builder_.getDoubleTy() : builder_.getFloatTy();
    llvm::Value* bits = builder_.CreateBitCast(builder_.CreateSExt(scalar, integer), number);
    return unpack(splat(builder_.CreateArithmeticFence(bits, number)));
}

llvm::Value* Lanes::here(llvm::Value* value) {
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (!instruction || !packs(value->getType()) || instruction->getParent() == builder_.GetInsertBlock()) return value;
    auto key = std::pair(value, builder_.GetInsertBlock());
    if (auto known = unpacked_.find(key); known != unpacked_.end()) return known->second;
    return unpacked_[key] = unpack(pack(value));
}

llvm::Value* Lanes::bits(llvm::Value* mask) {
    llvm::Value* lanes = mask;
    if (packs(mask->getType()) && !llvm::isa<llvm::Constant>(mask)) lanes = unpack(pack(mask));
    return builder_.CreateBitCast(lanes, builder_.getIntNTy(static_cast<unsigned>(count)));
}

llvm::Value* Lanes::any(llvm::Value* mask) {
    llvm::Value* bits = numbers(mask).bits;
    return builder_.CreateICmpNE(bits, llvm::Constant::getNullValue(bits->getType()));
}

// Logic on vectors of bools, in packed form for the reason given in lanes.h.
llvm::Value* Lanes::logic(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b) {
    bool constant = llvm::isa<llvm::Constant>(a) || llvm::isa<llvm::Constant>(b);
    if (!packs(a->getType()) || constant) return builder_.CreateBinOp(op, here(a), here(b));
    llvm::Value *left = pack(a), *right = pack(b);
    llvm::Type* integer = of(builder_.getIntNTy(left->getType()->getScalarSizeInBits()));
    llvm::Value* bits =
        builder_.CreateBinOp(op, builder_.CreateBitCast(left, integer), builder_.CreateBitCast(right, integer));
    return unpack(builder_.CreateBitCast(bits, left->getType()));
}

llvm::Value* Lanes::both(llvm::Value* mask, llvm::Value* condition) {
    return mask ? logic(llvm::Instruction::And, mask, condition) : condition;
}

llvm::Value* Lanes::choose(llvm::Value* condition, llvm::Value* a, llvm::Value* b) {
    auto is = [](llvm::Value* v, bool all) {
        auto* constant = llvm::dyn_cast<llvm::Constant>(v);
        return constant && (all ? constant->isAllOnesValue() : constant->isNullValue());
    };
    if (is(b, false)) return both(condition, a);
    if (is(a, true)) return logic(llvm::Instruction::Or, condition, b);
    if (!packs(a->getType())) return builder_.CreateSelect(condition, a, b);
    return unpack(builder_.CreateSelect(here(condition), pack(a), pack(b)));
}

Lanes::MaskNumbers Lanes::numbers(llvm::Value* mask) {
    auto [known, is_new] = mask_numbers_.try_emplace(mask);
    if (!is_new) return known->second;
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    llvm::Value* source = packs(mask->getType()) ? pack(mask) : mask;
    if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(source)) stand_after(instruction);
    llvm::Value* all = bits(mask);
    known->second = {all, builder_.CreateICmpEQ(all, llvm::Constant::getAllOnesValue(all->getType()))};
    return known->second;
}

}  // namespace weft::codegen
