// Values across lanes: their leaves, phis, blends, loops over active lanes. lanes.h has the vectors themselves.
#include "codegen/emitter.h"
#include "support/error.h"

namespace weft::codegen {

llvm::Type* Emitter::register_type(Scalar scalar) const { return codegen::register_type(context_, scalar); }

llvm::Type* Emitter::register_type(const LeafType& leaf) const {
    return leaf.pointer ? llvm::PointerType::getUnqual(context_) : register_type(leaf.scalar);
}

llvm::Type* Emitter::memory_type(const LeafType& leaf) const {
    if (leaf.pointer) return llvm::PointerType::getUnqual(context_);
    return leaf.scalar == Scalar::boolean ? llvm::Type::getInt8Ty(context_) : register_type(leaf.scalar);
}

llvm::Value* Emitter::vector(Leaf& leaf) {
    if (leaf.varying()) return lanes_.here(leaf.vector);
    if (leaf.vector && leaf.vector_block == builder_.GetInsertBlock()) return leaf.vector;
    llvm::Value* result = lanes_.packs(lanes_.of(leaf.scalar->getType())) && !llvm::isa<llvm::Constant>(leaf.scalar)
                              ? lanes_.spread_bool(leaf.scalar)
                              : lanes_.splat(leaf.scalar);
    if (leaf.step != 0 && leaf.scalar->getType()->isPointerTy()) {
        llvm::Type* integer = builder_.getInt64Ty();
        result = builder_.CreateGEP(builder_.getInt8Ty(), leaf.scalar,
                                    builder_.CreateMul(lanes_.iota(integer), lanes_.splat(i64(leaf.step))));
    } else if (leaf.step != 0) {
        llvm::Type* integer = leaf.scalar->getType();
        llvm::Value* steps =
            builder_.CreateMul(lanes_.iota(integer), lanes_.splat(llvm::ConstantInt::getSigned(integer, leaf.step)));
        result = builder_.CreateAdd(result, steps);
    }
    leaf.vector = result;
    leaf.vector_block = builder_.GetInsertBlock();
    return result;
}

llvm::Value* Emitter::active_lanes() { return mask_ ? lanes_.here(mask_) : lanes_.splat(builder_.getTrue()); }

Emitter::Phi Emitter::open_phi(const LeafType& type, bool as_vector, std::int64_t step) {
    Phi phi;
    phi.as_vector = as_vector;
    llvm::Type* node_type = register_type(type);
    if (as_vector) {
        phi.packed = lanes_.packs(lanes_.of(node_type));
        if (phi.packed)
            node_type = lanes_.count * 32 < machine_.vector_bits ? builder_.getDoubleTy() : builder_.getFloatTy();
        node_type = lanes_.of(node_type);
    }
    llvm::BasicBlock* block = builder_.GetInsertBlock();
    phi.node = llvm::PHINode::Create(node_type, 2, "", block->getFirstNonPHIIt());
    if (!as_vector) {
        phi.leaf = Leaf::of_linear(phi.node, step);
        return phi;
    }
    phi.leaf = Leaf::of_vector(phi.packed ? lanes_.unpack(phi.node) : phi.node);
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
    phi.node->addIncoming(phi.packed ? lanes_.pack(result) : result, from);
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

void Emitter::emit_if_true(llvm::Value* condition, const char* name, const std::function<void()>& a) {
    llvm::BasicBlock *then = new_block(name), *after = new_block("after");
    builder_.CreateCondBr(condition, then, after);
    builder_.SetInsertPoint(then);
    a();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
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
    return as_vector ? Leaf::of_vector(llvm::Constant::getNullValue(lanes_.of(scalar)))
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
        result.leaves.push_back(Leaf::of_vector(bools ? lanes_.choose(lanes_.here(condition), of_a, of_b)
                                                      : builder_.CreateSelect(lanes_.here(condition), of_a, of_b)));
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
    if (leaf.varying()) return builder_.CreateExtractElement(lanes_.here(leaf.vector), lane);
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
    if (!mask_) return lane_of(leaf, builder_.getInt32(static_cast<unsigned>(lanes_.count - 1)));
    llvm::Value* bits = lanes_.bits(mask_);
    llvm::Value* above = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, bits, builder_.getTrue());
    llvm::Value* last = llvm::ConstantInt::get(bits->getType(), static_cast<std::uint64_t>(lanes_.count - 1));
    llvm::Value* lane = builder_.CreateZExtOrTrunc(builder_.CreateSub(last, above), builder_.getInt32Ty());
    return lane_of(leaf, lane);
}

llvm::Value* Emitter::for_each_active_lane(
    llvm::Value* state, const std::function<llvm::Value*(llvm::Value* lane, llvm::Value* state)>& body) {
    if (lanes_.count == 1) return body(builder_.getInt32(0), state);
    llvm::Type* bits_type = builder_.getIntNTy(static_cast<unsigned>(lanes_.count));
    llvm::Value* all = mask_ ? lanes_.bits(mask_) : llvm::Constant::getAllOnesValue(bits_type);
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

llvm::Value* Emitter::is_full(llvm::Value* mask) {
    return in_tail_ ? builder_.getFalse() : lanes_.numbers(mask).is_full;
}

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
