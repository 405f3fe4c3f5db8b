// Atomics: relaxed, component by component.
//
// Lanes run one after the other, in order. If all lanes update one address and the old values are unused, the operands
// are reduced first, to one atomic per group. If only such atomics touch the array, not even that happens: see
// cpu/privatised.cpp.
#include <algorithm>

#include "codegen/emitter.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;

llvm::AtomicRMWInst::BinOp read_modify_write(Op op, bool is_float, bool is_signed) {
    using Kind = llvm::AtomicRMWInst;
    switch (op) {
        case Op::atomic_add:
            return is_float ? Kind::FAdd : Kind::Add;
        case Op::atomic_sub:
            return is_float ? Kind::FSub : Kind::Sub;
        case Op::atomic_min:
            return is_float ? Kind::FMin : is_signed ? Kind::Min : Kind::UMin;
        case Op::atomic_max:
            return is_float ? Kind::FMax : is_signed ? Kind::Max : Kind::UMax;
        case Op::atomic_and:
            return Kind::And;
        case Op::atomic_or:
            return Kind::Or;
        case Op::atomic_xor:
            return Kind::Xor;
        case Op::atomic_exch:
            return Kind::Xchg;
        default:
            throw InternalError(std::string("codegen: '") + ir::op_name(op) + "' is not an atomic read-modify-write");
    }
}

}  // namespace

// One atomic at one address. Operands and the returned old value are in memory form.
llvm::Value* Emitter::atomic_scalar(Op op, Scalar scalar, llvm::Value* pointer, llvm::Value* compare,
                                    llvm::Value* operand) {
    has_atomics_ = true;
    const ScalarInfo& row = info(scalar);
    llvm::Align alignment(static_cast<std::uint64_t>(row.bytes()));
    llvm::Type* bits_type = builder_.getIntNTy(static_cast<unsigned>(row.bits));
    if (op == Op::atomic_cas) {
        llvm::Value* pair = builder_.CreateAtomicCmpXchg(pointer, builder_.CreateBitCast(compare, bits_type),
                                                         builder_.CreateBitCast(operand, bits_type), alignment,
                                                         kRelaxed, kRelaxed, atomic_scope());
        return builder_.CreateBitCast(builder_.CreateExtractValue(pair, 0), operand->getType());
    }
    if (op == Op::atomic_sub && row.is_float() && !has_atomic(op, scalar) && has_atomic(Op::atomic_add, scalar)) {
        // a - b equals a + -b, bit by bit
        llvm::Value* negative = row.is_small_float() ? builder_.CreateXor(operand, std::uint64_t{1} << (row.bits - 1))
                                                     : builder_.CreateFNeg(operand);
        return atomic_scalar(Op::atomic_add, scalar, pointer, compare, negative);
    }
    if (op == Op::atomic_exch || has_atomic(op, scalar)) {
        // Small floats are integers elsewhere; an addition needs the float type.
        const bool is_small = op != Op::atomic_exch && row.is_small_float();
        llvm::Type* small = scalar == Scalar::bf16 ? builder_.getBFloatTy() : builder_.getHalfTy();
        llvm::Value* number = is_small ? builder_.CreateBitCast(operand, small) : operand;
        const bool is_float = row.is_float() && (is_small || !row.is_small_float());
        llvm::Value* old = builder_.CreateAtomicRMW(read_modify_write(op, is_float, row.is_signed()), pointer, number,
                                                    alignment, kRelaxed, atomic_scope());
        return builder_.CreateBitCast(old, operand->getType());
    }

    // No instruction exists: a loop of compare and swap.
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("cas"), *after = new_block("cas.done");
    llvm::Value* seen = builder_.CreateAlignedLoad(bits_type, pointer, alignment);
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    llvm::PHINode* old = builder_.CreatePHI(bits_type, 2);
    old->addIncoming(seen, before);
    llvm::Value* before_it = builder_.CreateBitCast(old, operand->getType());
    llvm::Value* fresh = builder_.CreateBitCast(binary(*ir::applied(op), scalar, before_it, operand), bits_type);
    llvm::Value* pair =
        builder_.CreateAtomicCmpXchg(pointer, old, fresh, alignment, kRelaxed, kRelaxed, atomic_scope());
    old->addIncoming(builder_.CreateExtractValue(pair, 0), builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateExtractValue(pair, 1), after, loop);
    builder_.SetInsertPoint(after);
    return before_it;
}

// The identity of an atomic: combined with any number, it gives that number bit by bit.
llvm::Constant* Emitter::neutral(Op op, Scalar scalar) const {
    const ScalarInfo& row = info(scalar);
    llvm::Type* type = register_type(scalar);
    auto bits = static_cast<unsigned>(row.bits);
    switch (op) {
        case Op::atomic_add:
        case Op::atomic_sub:
            return row.is_float() ? llvm::ConstantFP::getNegativeZero(type) : llvm::Constant::getNullValue(type);
        case Op::atomic_min:
        case Op::atomic_max:
            if (row.is_float()) return llvm::ConstantFP::getQNaN(type);
            if (row.is_signed())
                return llvm::ConstantInt::get(type, op == Op::atomic_min ? llvm::APInt::getSignedMaxValue(bits)
                                                                         : llvm::APInt::getSignedMinValue(bits));
            return op == Op::atomic_min ? llvm::Constant::getAllOnesValue(type) : llvm::Constant::getNullValue(type);
        case Op::atomic_and:
            return llvm::Constant::getAllOnesValue(type);
        default:
            return llvm::Constant::getNullValue(type);
    }
}

// Applies a total by an atomic, unless the total is the identity.
void Emitter::contribute(Op kind, Scalar scalar, llvm::Value* pointer, llvm::Value* total) {
    llvm::Constant* nothing = neutral(kind, scalar);
    llvm::Value* counts;
    if (!info(scalar).is_float()) {
        counts = builder_.CreateICmpNE(total, nothing);
    } else if (kind == Op::atomic_add) {
        llvm::Type* bits = builder_.getIntNTy(static_cast<unsigned>(info(scalar).bits));
        counts = builder_.CreateICmpNE(builder_.CreateBitCast(total, bits), builder_.CreateBitCast(nothing, bits));
    } else {
        counts = builder_.CreateFCmpORD(total, total);
    }
    llvm::BasicBlock *write = new_block("contribute"), *after = new_block("contributed");
    builder_.CreateCondBr(counts, write, after);
    builder_.SetInsertPoint(write);
    atomic_scalar(kind, scalar, pointer, nullptr, total);
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
}

// The operand of an atomic in active lanes, and the identity in the others.
llvm::Value* Emitter::contributions(Op op, Scalar scalar, Leaf& operand) {
    if (lanes_.count == 1) return operand.scalar;
    llvm::Value* values = vector(operand);
    return mask_ ? builder_.CreateSelect(lanes_.here(mask_), values, lanes_.splat(neutral(op, scalar))) : values;
}

// One operand that has the effect of all lanes' operands.
llvm::Value* Emitter::combine_lanes(Op op, Scalar scalar, llvm::Value* values) {
    if (!values->getType()->isVectorTy()) return values;
    const ScalarInfo& row = info(scalar);
    switch (op) {
        case Op::atomic_add:
        case Op::atomic_sub: {
            if (!row.is_float()) return builder_.CreateAddReduce(values);
            llvm::CallInst* sum = builder_.CreateFAddReduce(neutral(op, scalar), values);
            sum->setHasAllowReassoc(true);  // a tree, the same one every time
            return sum;
        }
        case Op::atomic_min:
            return row.is_float() ? builder_.CreateFPMinReduce(values)
                                  : builder_.CreateIntMinReduce(values, row.is_signed());
        case Op::atomic_max:
            return row.is_float() ? builder_.CreateFPMaxReduce(values)
                                  : builder_.CreateIntMaxReduce(values, row.is_signed());
        case Op::atomic_and:
            return builder_.CreateAndReduce(values);
        case Op::atomic_or:
            return builder_.CreateOrReduce(values);
        default:
            return builder_.CreateXorReduce(values);
    }
}

// Applies all active lanes to one address by one atomic. False if the operation does not allow it.
bool Emitter::reduce_into(Op op, Scalar scalar, const AtomicTarget& target, Leaf& operand) {
    if (scalar == Scalar::boolean || info(scalar).is_small_float() || !ir::applied(op)) return false;
    apply_atomic(op, scalar, target, nullptr, combine_lanes(op, scalar, contributions(op, scalar, operand)));
    return true;
}

// An atomic; in uncontended memory a plain load and store, which may take several numbers at once.
llvm::Value* Emitter::apply_atomic(Op op, Scalar scalar, const AtomicTarget& target, llvm::Value* compare,
                                   llvm::Value* operand) {
    if (!is_uncontended(target.root)) return atomic_scalar(op, scalar, target.pointer, compare, operand);
    llvm::Align alignment(static_cast<std::uint64_t>(info(scalar).bytes()));
    llvm::Value* old =
        with_alias(builder_.CreateAlignedLoad(operand->getType(), target.pointer, alignment), target.root);
    llvm::Value* fresh = binary(*ir::applied(op), scalar, old, operand);
    with_alias(builder_.CreateAlignedStore(fresh, target.pointer, alignment), target.root);
    return old;
}

namespace {

// The count of leading numbers that are added at once, in one register: a power of two.
std::size_t side_by_side(Op op, llvm::ArrayRef<LeafType> leaves) {
    const Scalar scalar = leaves[0].scalar;
    if ((op != Op::atomic_add && op != Op::atomic_sub) || (scalar != Scalar::f32 && scalar != Scalar::f64)) return 1;
    constexpr std::size_t kRegisterBytes = 16;
    return std::min(llvm::bit_floor(leaves.size()), kRegisterBytes / static_cast<std::size_t>(info(scalar).bytes()));
}

}  // namespace

// Applies the lanes one after the other, unrolled. Precondition: all lanes are active and the old values are unused.
// The address of each lane is computed from its own index: extracting pointers from a vector costs more.
void Emitter::apply_to_each_lane(const Operation& operation, llvm::ArrayRef<ir::Value*> indices,
                                 llvm::ArrayRef<LeafType> leaves) {
    // Behind a fence the indices are computed as vectors and then extracted; LLVM would compute them one by one.
    for (const ir::Value* index : indices) {
        unsigned bits = leaf(index).varying() ? leaf(index).vector->getType()->getScalarSizeInBits() : 0;
        if (bits != 32 && bits != 64) continue;
        llvm::Type* number = lanes_.of(bits == 32 ? builder_.getFloatTy() : builder_.getDoubleTy());
        llvm::Value* fenced =
            builder_.CreateArithmeticFence(builder_.CreateBitCast(leaf(index).vector, number), number);
        leaf(index) = Leaf::of_vector(builder_.CreateBitCast(fenced, leaf(index).vector->getType()));
    }
    for (int number = 0; number < lanes_.count; ++number) {
        llvm::Value* lane = builder_.getInt32(static_cast<unsigned>(number));
        llvm::SmallVector<Leaf, 4> saved;
        for (const ir::Value* index : indices) saved.push_back(leaf(index));
        for (const ir::Value* index : indices)
            if (!leaf(index).uniform()) leaf(index) = Leaf::of_scalar(lane_of(leaf(index), lane));
        Address address = address_of(operation.operands[0], indices);
        for (std::size_t i = 0; i < indices.size(); ++i) leaf(indices[i]) = saved[i];
        LaneValue& operand = value(operation.operands.back());
        for (std::size_t i = 0; i < leaves.size();) {
            const std::size_t count = side_by_side(operation.op, leaves.drop_front(i));
            llvm::Value* applied = lane_of(operand.leaves[i], lane);
            if (count > 1) {
                llvm::Value* several = llvm::PoisonValue::get(
                    llvm::FixedVectorType::get(applied->getType(), static_cast<unsigned>(count)));
                for (std::size_t k = 0; k < count; ++k)
                    several = builder_.CreateInsertElement(several, lane_of(operand.leaves[i + k], lane), k);
                applied = several;
            }
            apply_atomic(operation.op, leaves[i].scalar,
                         {pointer_of_lane(address, leaves[i].offset, lane), address.root}, nullptr, applied);
            i += count;
        }
    }
}

namespace {

llvm::ArrayRef<ir::Value*> indices_of(const Operation& operation) {
    return llvm::ArrayRef<ir::Value*>(operation.operands)
        .drop_front()
        .drop_back(ir::values_behind_indices(operation.op));
}

}  // namespace

bool Emitter::uses_result(const Operation& operation) const {
    return !operation.results.empty() && is_used(operation.result());
}

// Applies the atomic. Returns the old values if they are used.
LaneValue Emitter::apply_in_lanes(const Operation& operation) {
    const llvm::ArrayRef<ir::Value*> indices = indices_of(operation);
    const ir::Value* stored = operation.operands.back();
    const ir::Value* expected = operation.op == Op::atomic_cas ? operation.operands[1 + indices.size()] : nullptr;
    const std::vector<LeafType> leaves = leaf_types(stored->type);
    const bool used = uses_result(operation);
    Address address = address_of(operation.operands[0], indices);
    note_access(operation, address, AccessKind::atomic);
    LaneValue old{stored->type, {}, {}};
    const auto apply = [&](std::size_t i, llvm::Value* lane) {
        const LeafType& type = leaves[i];
        auto in_memory = [&](Leaf& leaf) {
            llvm::Value* scalar = lane_of(leaf, lane);
            return type.scalar == Scalar::boolean ? builder_.CreateZExt(scalar, memory_type(type)) : scalar;
        };
        llvm::Value* compare = expected ? in_memory(value(expected).leaves[i]) : nullptr;
        AtomicTarget target{pointer_of_lane(address, type.offset, lane), address.root};
        return apply_atomic(operation.op, type.scalar, target, compare, in_memory(value(stored).leaves[i]));
    };
    if (lanes_.count > 1 && !used) {
        bool all_at_once = address.uniform();
        for (std::size_t i = 0; i < leaves.size() && all_at_once; ++i)
            all_at_once =
                reduce_into(operation.op, leaves[i].scalar, {byte_offset(address.base, leaves[i].offset), address.root},
                            value(stored).leaves[i]);
        if (all_at_once) return old;
        if (!mask_ && is_uncontended(address.root)) {
            // The changed indices are valid on this path only.
            apart(indices, [&] { apply_to_each_lane(operation, indices, leaves); });
            return old;
        }
        for_each_active_lane(nullptr, [&](llvm::Value* lane, llvm::Value*) -> llvm::Value* {
            for (std::size_t i = 0; i < leaves.size(); ++i) apply(i, lane);
            return nullptr;
        });
        return old;
    }
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const bool keeps = used && lanes_.count > 1;
        llvm::Value* start = keeps ? llvm::Constant::getNullValue(lanes_.of(memory_type(leaves[i]))) : nullptr;
        llvm::Value* last = for_each_active_lane(start, [&](llvm::Value* lane, llvm::Value* seen) {
            llvm::Value* before = apply(i, lane);
            return keeps ? builder_.CreateInsertElement(seen, before, lane) : before;
        });
        if (!used) continue;
        old.leaves.push_back(lanes_.count == 1 ? Leaf::of_scalar(from_memory(last, leaves[i]))
                                               : Leaf::of_vector(from_memory(last, leaves[i])));
    }
    return old;
}

void Emitter::emit_atomic(const Operation& operation) {
    if (emit_put_together(operation)) return;
    const bool used = uses_result(operation);
    if (!options_.debug) {
        LaneValue old = apply_in_lanes(operation);
        if (used) set(operation.result(), std::move(old));
        return;
    }
    llvm::Value* ok = check_access(operation, indices_of(operation));
    llvm::BasicBlock *inside = new_block("access"), *after = new_block("access.done"),
                     *checked = builder_.GetInsertBlock();
    const Type type = operation.operands.back()->type;
    LaneValue nothing = zero_value(type, false);
    builder_.CreateCondBr(ok, inside, after);
    builder_.SetInsertPoint(inside);
    LaneValue old = apply_in_lanes(operation);
    llvm::BasicBlock* end = builder_.GetInsertBlock();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    if (used) set(operation.result(), merge(type, false, old, end, nothing, checked));
}

}  // namespace weft::codegen
