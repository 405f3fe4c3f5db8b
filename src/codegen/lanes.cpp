// Leaves as vectors, masks from block to block, phis, loops over active lanes.
//
// A compare makes a vector of bools in a register as wide as the compared numbers, all ones or all zeros. Inside one
// block LLVM's instruction selection keeps it there. From block to block (a mask computed before a branch, a loop's
// mask) it would narrow <8 x i1> to eight 16-bit numbers and widen it again at every use. So a vector of bools crosses
// blocks in packed form: sign-extended to the width of a register and held as floats behind an arithmetic fence. No
// pass looks through the fence, and it costs no instruction. Machines with mask registers need none of this.
#include "codegen/emitter.h"
#include "support/error.h"

namespace weft::codegen {

llvm::Type* Emitter::register_type(Scalar scalar) const {
    auto& context = context_;
    switch (scalar) {
        case Scalar::boolean:
            return llvm::Type::getInt1Ty(context);
        case Scalar::f32:
            return llvm::Type::getFloatTy(context);
        case Scalar::f64:
            return llvm::Type::getDoubleTy(context);
        default:
            return llvm::Type::getIntNTy(context, static_cast<unsigned>(info(scalar).bits));
    }
}

llvm::Type* Emitter::register_type(const LeafType& leaf) const {
    return leaf.pointer ? llvm::PointerType::getUnqual(context_) : register_type(leaf.scalar);
}

llvm::Type* Emitter::memory_type(const LeafType& leaf) const {
    if (leaf.pointer) return llvm::PointerType::getUnqual(context_);
    return leaf.scalar == Scalar::boolean ? llvm::Type::getInt8Ty(context_) : register_type(leaf.scalar);
}

llvm::Type* Emitter::lanes_of(llvm::Type* scalar) const {
    return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes_));
}

llvm::Value* Emitter::splat(llvm::Value* scalar) {
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(scalar))
        return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(lanes_)), constant);
    return builder_.CreateVectorSplat(static_cast<unsigned>(lanes_), scalar);
}

llvm::Value* Emitter::iota(llvm::Type* integer) const {
    llvm::SmallVector<llvm::Constant*, 16> elements;
    for (int lane = 0; lane < lanes_; ++lane)
        elements.push_back(llvm::ConstantInt::get(integer, static_cast<std::uint64_t>(lane)));
    return llvm::ConstantVector::get(elements);
}

llvm::Value* Emitter::vector(Leaf& leaf) {
    if (leaf.varying()) return here(leaf.vector);
    if (leaf.vector && leaf.vector_block == builder_.GetInsertBlock()) return leaf.vector;
    llvm::Value* result = packs(lanes_of(leaf.scalar->getType())) && !llvm::isa<llvm::Constant>(leaf.scalar)
                              ? spread_bool(leaf.scalar)
                              : splat(leaf.scalar);
    if (leaf.step != 0 && leaf.scalar->getType()->isPointerTy()) {
        llvm::Type* integer = builder_.getInt64Ty();
        result = builder_.CreateGEP(builder_.getInt8Ty(), leaf.scalar,
                                    builder_.CreateMul(iota(integer), splat(i64(leaf.step))));
    } else if (leaf.step != 0) {
        llvm::Type* integer = leaf.scalar->getType();
        llvm::Value* steps = builder_.CreateMul(iota(integer), splat(llvm::ConstantInt::getSigned(integer, leaf.step)));
        result = builder_.CreateAdd(result, steps);
    }
    leaf.vector = result;
    leaf.vector_block = builder_.GetInsertBlock();
    return result;
}

bool Emitter::packs(llvm::Type* type) const {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector && vector->getElementType()->isIntegerTy(1) && !machine_.mask_registers;
}

// Moves the builder to the first point at which the instruction's value is available.
void Emitter::stand_after(llvm::Instruction* instruction) {
    llvm::BasicBlock* block = instruction->getParent();
    if (llvm::isa<llvm::PHINode>(instruction))
        builder_.SetInsertPoint(block, block->getFirstNonPHIIt());
    else
        builder_.SetInsertPoint(block, std::next(instruction->getIterator()));
}

llvm::Value* Emitter::pack(llvm::Value* bits) {
    if (auto known = packed_.find(bits); known != packed_.end()) return known->second;
    Builder::InsertPointGuard guard(builder_);
    if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(bits)) stand_after(instruction);
    bool wide = lanes_ * 32 < machine_.vector_bits;
    llvm::Type* integer = lanes_of(wide ? builder_.getInt64Ty() : builder_.getInt32Ty());
    llvm::Type* number = lanes_of(wide ? builder_.getDoubleTy() : builder_.getFloatTy());
    llvm::Value* result = builder_.CreateBitCast(builder_.CreateSExt(bits, integer), number);
    if (!llvm::isa<llvm::Constant>(result)) result = builder_.CreateArithmeticFence(result, number);
    packed_[bits] = result;
    return result;
}

llvm::Value* Emitter::unpack(llvm::Value* packed) {
    auto* number = llvm::cast<llvm::FixedVectorType>(packed->getType());
    llvm::Type* integer = lanes_of(builder_.getIntNTy(number->getScalarSizeInBits()));
    llvm::Value* bits =
        builder_.CreateICmpSLT(builder_.CreateBitCast(packed, integer), llvm::Constant::getNullValue(integer));
    if (!llvm::isa<llvm::Constant>(bits)) packed_[bits] = packed;
    return bits;
}

// The same numbers behind a fence, which no pass looks through. A vector whose bits do not fill whole floats is widened
// for it.
llvm::Value* Emitter::behind_fence(llvm::Value* vector) {
    auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
    unsigned bits = type->getScalarSizeInBits() * type->getNumElements();
    if (bits % 32 != 0) {
        llvm::Value* wide = builder_.CreateZExt(
            builder_.CreateBitCast(vector, lanes_of(builder_.getIntNTy(type->getScalarSizeInBits()))),
            lanes_of(builder_.getInt32Ty()));
        llvm::Value* narrow =
            builder_.CreateTrunc(behind_fence(wide), lanes_of(builder_.getIntNTy(type->getScalarSizeInBits())));
        return builder_.CreateBitCast(narrow, type);
    }
    bool doubles = type->getScalarSizeInBits() == 64;
    llvm::Type* number = llvm::FixedVectorType::get(doubles ? builder_.getDoubleTy() : builder_.getFloatTy(),
                                                    bits / (doubles ? 64 : 32));
    llvm::Value* fenced = builder_.CreateArithmeticFence(builder_.CreateBitCast(vector, number), number);
    return builder_.CreateBitCast(fenced, type);
}

// A uniform bool for all lanes, spread in packed form: a broadcast of i1 would go through bytes.
llvm::Value* Emitter::spread_bool(llvm::Value* scalar) {
    bool wide = lanes_ * 32 < machine_.vector_bits;
    llvm::Type* integer = wide ? builder_.getInt64Ty() : builder_.getInt32Ty();
    llvm::Type* number = wide ? builder_.getDoubleTy() : builder_.getFloatTy();
    llvm::Value* bits = builder_.CreateBitCast(builder_.CreateSExt(scalar, integer), number);
    return unpack(splat(builder_.CreateArithmeticFence(bits, number)));
}

llvm::Value* Emitter::here(llvm::Value* value) {
    auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (!instruction || !packs(value->getType()) || instruction->getParent() == builder_.GetInsertBlock()) return value;
    auto key = std::pair(value, builder_.GetInsertBlock());
    if (auto known = unpacked_.find(key); known != unpacked_.end()) return known->second;
    return unpacked_[key] = unpack(pack(value));
}

llvm::Value* Emitter::mask_bits(llvm::Value* mask) {
    llvm::Value* lanes = mask;
    if (packs(mask->getType()) && !llvm::isa<llvm::Constant>(mask)) lanes = unpack(pack(mask));
    return builder_.CreateBitCast(lanes, builder_.getIntNTy(static_cast<unsigned>(lanes_)));
}

llvm::Value* Emitter::any_lane(llvm::Value* mask) {
    llvm::Value* bits = mask_numbers(mask).bits;
    return builder_.CreateICmpNE(bits, llvm::Constant::getNullValue(bits->getType()));
}

// Logic on vectors of bools, in packed form for the reason given above.
llvm::Value* Emitter::lane_logic(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b) {
    bool constant = llvm::isa<llvm::Constant>(a) || llvm::isa<llvm::Constant>(b);
    if (!packs(a->getType()) || constant) return builder_.CreateBinOp(op, here(a), here(b));
    llvm::Value *left = pack(a), *right = pack(b);
    llvm::Type* integer = lanes_of(builder_.getIntNTy(left->getType()->getScalarSizeInBits()));
    llvm::Value* bits =
        builder_.CreateBinOp(op, builder_.CreateBitCast(left, integer), builder_.CreateBitCast(right, integer));
    return unpack(builder_.CreateBitCast(bits, left->getType()));
}

llvm::Value* Emitter::both(llvm::Value* mask, llvm::Value* condition) {
    return mask ? lane_logic(llvm::Instruction::And, mask, condition) : condition;
}

// condition ? a : b, all three vectors of bools.
llvm::Value* Emitter::choose_bools(llvm::Value* condition, llvm::Value* a, llvm::Value* b) {
    auto is = [](llvm::Value* v, bool all) {
        auto* constant = llvm::dyn_cast<llvm::Constant>(v);
        return constant && (all ? constant->isAllOnesValue() : constant->isNullValue());
    };
    if (is(b, false)) return both(condition, a);
    if (is(a, true)) return lane_logic(llvm::Instruction::Or, condition, b);
    if (!packs(a->getType())) return builder_.CreateSelect(condition, a, b);
    return unpack(builder_.CreateSelect(here(condition), pack(a), pack(b)));
}

llvm::Value* Emitter::active_lanes() { return mask_ ? here(mask_) : splat(builder_.getTrue()); }

Emitter::Phi Emitter::open_phi(const LeafType& type, bool as_vector, std::int64_t step) {
    Phi phi;
    phi.as_vector = as_vector;
    llvm::Type* node_type = register_type(type);
    if (as_vector) {
        phi.packed = packs(lanes_of(node_type));
        if (phi.packed) node_type = lanes_ * 32 < machine_.vector_bits ? builder_.getDoubleTy() : builder_.getFloatTy();
        node_type = lanes_of(node_type);
    }
    llvm::BasicBlock* block = builder_.GetInsertBlock();
    phi.node = llvm::PHINode::Create(node_type, 2, "", block->getFirstNonPHIIt());
    if (!as_vector) {
        phi.leaf = Leaf::of_linear(phi.node, step);
        return phi;
    }
    phi.leaf = Leaf::of_vector(phi.packed ? unpack(phi.node) : phi.node);
    return phi;
}

void Emitter::add_incoming(Phi& phi, Leaf value, llvm::BasicBlock* from) {
    Builder::InsertPointGuard guard(builder_);
    if (llvm::Instruction* terminator = from->getTerminator())
        builder_.SetInsertPoint(terminator);
    else
        builder_.SetInsertPoint(from);
    if (!phi.as_vector) {
        WEFT_CHECK(!value.varying() && value.step == phi.leaf.step,
                   "a value planned as uniform differs between lanes in kernel '" + kernel_.name + "'");
        phi.node->addIncoming(value.scalar, from);
        return;
    }
    llvm::Value* result = value.varying() ? value.vector : vector(value);
    phi.node->addIncoming(phi.packed ? pack(result) : result, from);
}

std::pair<llvm::BasicBlock*, llvm::BasicBlock*> Emitter::emit_either(llvm::Value* condition, const char* name,
                                                                     const std::function<void()>& a,
                                                                     const std::function<void()>& b) {
    llvm::BasicBlock *first = new_block(name), *second = new_block("else"), *after = new_block("endif");
    builder_.CreateCondBr(condition, first, second);
    builder_.SetInsertPoint(first);
    a();
    llvm::BasicBlock* end_of_a = builder_.GetInsertBlock();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(second);
    b();
    llvm::BasicBlock* end_of_b = builder_.GetInsertBlock();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    return {end_of_a, end_of_b};
}

LaneValue Emitter::merge(Type type, bool as_vector, LaneValue& a, llvm::BasicBlock* from_a, LaneValue& b,
                         llvm::BasicBlock* from_b) {
    LaneValue result{type, {}, a.root == b.root ? a.root : MemoryRoot{}};
    std::vector<LeafType> types = leaf_types(type);
    for (std::size_t i = 0; i < types.size(); ++i) {
        Leaf &left = a.leaves[i], &right = b.leaves[i];
        if (!left.varying() && left.scalar == right.scalar && left.step == right.step) {
            result.leaves.push_back(left);
            continue;
        }
        bool in_lanes = as_vector || left.varying() || right.varying() || left.step != right.step;
        Phi phi = open_phi(types[i], in_lanes, in_lanes ? 0 : left.step);
        add_incoming(phi, left, from_a);
        add_incoming(phi, right, from_b);
        result.leaves.push_back(phi.leaf);
    }
    return result;
}

Leaf Emitter::zero_leaf(const LeafType& type, bool as_vector) {
    llvm::Type* scalar = register_type(type);
    return as_vector ? Leaf::of_vector(llvm::Constant::getNullValue(lanes_of(scalar)))
                     : Leaf::of_scalar(llvm::Constant::getNullValue(scalar));
}

LaneValue Emitter::zero_value(Type type, bool as_vector) {
    LaneValue result{type, {}, {}};
    for (const LeafType& leaf : leaf_types(type)) result.leaves.push_back(zero_leaf(leaf, as_vector));
    return result;
}

LaneValue Emitter::blend(llvm::Value* condition, LaneValue& a, LaneValue& b) {
    LaneValue result{a.type, {}, a.root == b.root ? a.root : MemoryRoot{}};
    for (std::size_t i = 0; i < a.leaves.size(); ++i) {
        Leaf &left = a.leaves[i], &right = b.leaves[i];
        bool same = left.varying() ? left.vector == right.vector && right.varying()
                                   : left.scalar == right.scalar && left.step == right.step;
        if (same) {
            result.leaves.push_back(left);
            continue;
        }
        llvm::Value *of_a = vector(left), *of_b = vector(right);
        bool bools = of_a->getType()->getScalarType()->isIntegerTy(1);
        result.leaves.push_back(Leaf::of_vector(bools ? choose_bools(here(condition), of_a, of_b)
                                                      : builder_.CreateSelect(here(condition), of_a, of_b)));
    }
    return result;
}

LaneValue& Emitter::value(const ir::Value* v) {
    auto found = values_.find(v);
    WEFT_CHECK(found != values_.end(),
               "kernel '" + kernel_.name + "' uses value %" + std::to_string(v->id) + " before its definition");
    return found->second;
}

void Emitter::set(const ir::Value* v, LaneValue result) {
    result.type = v->type;
    values_[v] = std::move(result);
}

void Emitter::set(const ir::Value* v, Leaf result) {
    LaneValue whole{v->type, {}, {}};
    whole.leaves.push_back(result);
    values_[v] = std::move(whole);
}

bool Emitter::varying(const ir::Value* v) const { return shape(v).kind == transform::LaneShape::Kind::varying; }

std::int64_t Emitter::step_of(const ir::Value* v) const {
    const transform::LaneShape found = shape(v);
    return found.kind == transform::LaneShape::Kind::linear ? found.stride : 0;
}

llvm::BasicBlock* Emitter::new_block(const char* name) { return llvm::BasicBlock::Create(context_, name, function_); }

llvm::Value* Emitter::lane_of(Leaf& leaf, llvm::Value* lane) {
    if (leaf.varying()) return builder_.CreateExtractElement(here(leaf.vector), lane);
    if (leaf.step == 0) return leaf.scalar;
    if (leaf.scalar->getType()->isPointerTy()) {
        llvm::Value* distance =
            builder_.CreateMul(builder_.CreateZExtOrTrunc(lane, builder_.getInt64Ty()), i64(leaf.step));
        return builder_.CreateGEP(builder_.getInt8Ty(), leaf.scalar, distance);
    }
    llvm::Type* integer = leaf.scalar->getType();
    llvm::Value* distance =
        builder_.CreateMul(builder_.CreateZExtOrTrunc(lane, integer), llvm::ConstantInt::getSigned(integer, leaf.step));
    return builder_.CreateAdd(leaf.scalar, distance);
}

llvm::Value* Emitter::pick_last_active(Leaf& leaf) {
    if (leaf.uniform()) return leaf.scalar;
    if (!mask_) return lane_of(leaf, builder_.getInt32(static_cast<unsigned>(lanes_ - 1)));
    llvm::Value* bits = mask_bits(mask_);
    llvm::Value* above = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, bits, builder_.getTrue());
    llvm::Value* last = llvm::ConstantInt::get(bits->getType(), static_cast<std::uint64_t>(lanes_ - 1));
    llvm::Value* lane = builder_.CreateZExtOrTrunc(builder_.CreateSub(last, above), builder_.getInt32Ty());
    return lane_of(leaf, lane);
}

llvm::Value* Emitter::for_each_active_lane(
    llvm::Value* state, const std::function<llvm::Value*(llvm::Value* lane, llvm::Value* state)>& body) {
    if (lanes_ == 1) return body(builder_.getInt32(0), state);
    llvm::Type* bits_type = builder_.getIntNTy(static_cast<unsigned>(lanes_));
    llvm::Value* all = mask_ ? mask_bits(mask_) : llvm::Constant::getAllOnesValue(bits_type);
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("lane"), *after = new_block("lanes.done");
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    llvm::PHINode* bits = builder_.CreatePHI(bits_type, 2);
    llvm::PHINode* carried = state ? builder_.CreatePHI(state->getType(), 2) : nullptr;
    bits->addIncoming(all, before);
    if (carried) carried->addIncoming(state, before);
    llvm::Value* lane = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, builder_.getTrue());
    llvm::Value* next_state = body(builder_.CreateZExtOrTrunc(lane, builder_.getInt32Ty()), carried);
    llvm::Value* rest = builder_.CreateAnd(bits, builder_.CreateSub(bits, llvm::ConstantInt::get(bits_type, 1)));
    llvm::BasicBlock* latch = builder_.GetInsertBlock();
    bits->addIncoming(rest, latch);
    if (carried) carried->addIncoming(next_state, latch);
    builder_.CreateCondBr(builder_.CreateICmpNE(rest, llvm::Constant::getNullValue(bits_type)), loop, after);
    builder_.SetInsertPoint(after);
    return next_state;
}

// The mask as integers, computed once, directly behind its definition.
Emitter::MaskNumbers Emitter::mask_numbers(llvm::Value* mask) {
    auto [known, is_new] = mask_numbers_.try_emplace(mask);
    if (!is_new) return known->second;
    Builder::InsertPointGuard guard(builder_);
    llvm::Value* source = packs(mask->getType()) ? pack(mask) : mask;
    if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(source)) stand_after(instruction);
    llvm::Value* bits = mask_bits(mask);
    known->second = {bits, builder_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()))};
    return known->second;
}

llvm::Value* Emitter::is_full(llvm::Value* mask) { return in_tail_ ? builder_.getFalse() : mask_numbers(mask).is_full; }

void Emitter::apart(llvm::ArrayRef<ir::Value*> values, const std::function<void()>& way) {
    llvm::SmallVector<LaneValue, 4> saved;
    for (const ir::Value* one : values) saved.push_back(value(one));
    way();
    for (std::size_t i = 0; i < values.size(); ++i) value(values[i]) = std::move(saved[i]);
}

// Computes a launch-invariant value (analysis/underlying_memory.h) at the builder's position.
void Emitter::emit_invariant(const ir::Value* value) {
    const ir::Operation* definition = value->definition;
    if (!definition) return;
    for (const ir::Value* operand : definition->operands) emit_invariant(operand);
    emit_operation(*definition);
}

}  // namespace weft::codegen
