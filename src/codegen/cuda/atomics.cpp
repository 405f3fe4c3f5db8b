// Atomics. If the address is the same for the whole launch, as in a sum over all threads, a warp reduces its operands
// first, and one thread applies the result:
//
//     before: atomic.add total[0], x                        32 atomics that wait for each other
//     after:  if all threads of the warp are active:
//                 s = sum of x over the warp, by shuffles
//                 the first thread: atomic.add total[0], s
//             else: atomic.add total[0], x
//
// As on the CPU, sums of floats are then rounded in another order. privatised.cpp goes further, for arrays that the
// kernel accesses in no other way.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/cuda/emitter.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

// Whether a warp can reduce the operands: by shuffles of 32 or 64 bits. Precondition: the result is unused.
bool can_be_put_together(const Operation& atomic) {
    if (!ir::applied(atomic.op)) return false;
    for (const LeafType& leaf : leaf_types(atomic.operands.back()->type)) {
        const int bits = info(leaf.scalar).bits;
        if (leaf.pointer || (bits != 32 && bits != 64)) return false;
    }
    return true;
}

}  // namespace

// Instructions add floats, those of 16 bits if the processor has them; all other float atomics compare and swap.
bool CudaEmitter::has_atomic(Op op, Scalar scalar) const {
    constexpr int kAddsBfloats = 90;
    if (!info(scalar).is_float()) return true;
    if (op != Op::atomic_add) return false;
    if (scalar == Scalar::bf16) return architecture_ >= kAddsBfloats;
    return scalar == Scalar::f16 || !info(scalar).is_small_float();
}

// The number of the lane at the given XOR distance in the warp.
llvm::Value* CudaEmitter::of_other_lane(llvm::Value* number, int distance, llvm::Value* lanes) {
    llvm::Type* const type = number->getType();
    llvm::Type* const word = builder_.getInt32Ty();
    const auto words = static_cast<unsigned>(type->getScalarSizeInBits() / 32);
    auto* const several = llvm::FixedVectorType::get(word, words);
    llvm::Value* const bits = builder_.CreateBitCast(number, several);
    llvm::Value* moved = llvm::PoisonValue::get(several);
    for (unsigned i = 0; i < words; ++i) {
        llvm::Value* part = builder_.CreateIntrinsic(
            llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
            {lanes, builder_.CreateExtractElement(bits, std::uint64_t{i}),
             builder_.getInt32(static_cast<std::uint32_t>(distance)), builder_.getInt32(kWarp - 1)});
        moved = builder_.CreateInsertElement(moved, part, std::uint64_t{i});
    }
    return builder_.CreateBitCast(moved, type);
}

// The numbers of these lanes, each of which calls this, by one instruction. Null if there is none.
llvm::Value* CudaEmitter::reduced_at_once(Op kind, Scalar scalar, llvm::Value* number, llvm::Value* lanes) {
    constexpr int kReduces = 80;
    if (architecture_ < kReduces || info(scalar).is_float() || info(scalar).bits != 32) return nullptr;
    const bool is_signed = info(scalar).is_signed();
    const llvm::Intrinsic::ID which = [&]() -> llvm::Intrinsic::ID {
        switch (kind) {
            case Op::atomic_add:
            case Op::atomic_sub:
                return llvm::Intrinsic::nvvm_redux_sync_add;
            case Op::atomic_min:
                return is_signed ? llvm::Intrinsic::nvvm_redux_sync_min : llvm::Intrinsic::nvvm_redux_sync_umin;
            case Op::atomic_max:
                return is_signed ? llvm::Intrinsic::nvvm_redux_sync_max : llvm::Intrinsic::nvvm_redux_sync_umax;
            case Op::atomic_and:
                return llvm::Intrinsic::nvvm_redux_sync_and;
            case Op::atomic_or:
                return llvm::Intrinsic::nvvm_redux_sync_or;
            default:
                return llvm::Intrinsic::nvvm_redux_sync_xor;
        }
    }();
    return builder_.CreateIntrinsic(which, {}, {number, lanes});
}

llvm::Value* CudaEmitter::sum_of_warp(Op op, Scalar scalar, llvm::Value* number) {
    if (llvm::Value* at_once = reduced_at_once(op, scalar, number, builder_.getInt32(~0u))) return at_once;
    const Op combined = op == Op::atomic_sub ? Op::add : *ir::applied(op);
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
        number = binary(combined, scalar, number, of_other_lane(number, distance, builder_.getInt32(~0u)));
    return number;
}

bool CudaEmitter::emit_put_together(const Operation& atomic) {
    if (accumulate(atomic) || add_to_shared_copy(atomic)) return true;
    if (options_.debug || uses_result(atomic) || !plan_.atomics.at(&atomic).is_fixed || !can_be_put_together(atomic) ||
        is_uncontended(memory_of(atomic)))
        return false;
    Address address =
        address_of(atomic.operands[0], llvm::ArrayRef<ir::Value*>(atomic.operands).drop_front().drop_back());
    const Type type = atomic.operands.back()->type;
    const std::vector<LeafType> leaves = leaf_types(type);
    LaneValue& numbers = value(atomic.operands.back());
    const auto apply = [&](std::size_t i, llvm::Value* number) {
        atomic_scalar(atomic.op, leaves[i].scalar, byte_offset(address.base, leaves[i].offset), nullptr, number);
    };
    const auto together = [&] {
        llvm::SmallVector<llvm::Value*, 4> sums;
        for (std::size_t i = 0; i < leaves.size(); ++i)
            sums.push_back(sum_of_warp(atomic.op, leaves[i].scalar, numbers.leaves[i].scalar));
        llvm::BasicBlock *first = new_block("first"), *after = new_block("first.done");
        llvm::Value* lane = builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, {});
        builder_.CreateCondBr(builder_.CreateICmpEQ(lane, builder_.getInt32(0)), first, after);
        builder_.SetInsertPoint(first);
        for (std::size_t i = 0; i < leaves.size(); ++i) apply(i, sums[i]);
        builder_.CreateBr(after);
        builder_.SetInsertPoint(after);
    };
    llvm::Value* here = builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_activemask, {});
    emit_either(builder_.CreateICmpEQ(here, builder_.getInt32(~0u)), "warp", together, [&] {
        for (std::size_t i = 0; i < leaves.size(); ++i) apply(i, numbers.leaves[i].scalar);
    });
    return true;
}

}  // namespace weft::codegen
