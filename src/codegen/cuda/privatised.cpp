// Contributions of the threads of a block that arrive as one. If a kernel only combines into an array
// (transform/analysis/privatised.h), an atomic for each thread is more than necessary.
//
// An address that no thread changes:
//
//     before: for the thread's elements: atomic.add total[0], x
//     after:  sum = identity; for the thread's elements: sum += x
//             a warp adds its sums by shuffles, the first warp those of all warps
//             the first thread: atomic.add total[0], sum of the block
//
// Varying addresses, in an array that is small at the launch (CudaLaunch::shared_copies):
//
//     before: for the thread's elements: atomic.add bins[i], x
//     after:  copy = identity everywhere, in shared memory
//             for the thread's elements: atomic.add copy[i], x
//             for all i, shared among the threads: atomic.add bins[i], copy[i]
//
// All threads of a block come to the end of the kernel, also those without elements. As on the CPU, sums of floats are
// rounded in another order.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>

#include "binary/cuda_abi.h"
#include "codegen/cuda/emitter.h"
#include "ir/walk.h"
#include "types/layout.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

constexpr unsigned kSharedMemory = 3;  // address space
constexpr int kMostWarps = 32;         // of a block

std::size_t memory_leaf(MemoryRoot root) { return root.gradient ? kGradLeaf : kDataLeaf; }

}  // namespace

void CudaEmitter::emit_barrier() {
    builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_all, {builder_.getInt32(0)});
}

llvm::Value* CudaEmitter::thread_of_block() {
    return builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
}

void CudaEmitter::open_block_sums() {
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    builder_.clearFastMathFlags();
    open_accumulators();
    open_shared_copies();
}

// ---- addresses that no thread changes ----

void CudaEmitter::open_accumulators() {
    if (plan_.accumulated.empty()) return;
    ir::for_each_operation(kernel_.body, [&](const Operation& operation) {
        if (!plan_.accumulated.contains(&operation)) return;
        const llvm::ArrayRef<ir::Value*> indices =
            llvm::ArrayRef<ir::Value*>(operation.operands).drop_front().drop_back();
        emit_invariant(operation.operands[0]);
        for (const ir::Value* index : indices) emit_invariant(index);
        const Address address = address_of(operation.operands[0], indices);
        const Op kind = plan_.privatised.at(memory_of(operation));
        for (const LeafType& leaf : leaf_types(operation.operands.back()->type)) {
            llvm::Constant* nothing = neutral(kind, leaf.scalar);
            llvm::AllocaInst* sum =
                builder_.CreateAlloca(nothing->getType(), module_.getDataLayout().getAllocaAddrSpace());
            builder_.CreateStore(nothing, sum);
            accumulators_[&operation].push_back({kind, leaf.scalar, sum, byte_offset(address.base, leaf.offset)});
        }
    });
}

bool CudaEmitter::accumulate(const Operation& operation) {
    const auto found = accumulators_.find(&operation);
    if (found == accumulators_.end()) return false;
    // Fast math could drop the signed zero or NaN that is the identity.
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    builder_.clearFastMathFlags();
    const LaneValue& operand = value(operation.operands.back());
    for (std::size_t i = 0; i < found->second.size(); ++i) {
        const Accumulator& accumulator = found->second[i];
        llvm::Value* fresh = operand.leaves[i].scalar;
        llvm::Value* sum = builder_.CreateLoad(fresh->getType(), accumulator.sum);
        builder_.CreateStore(binary(*ir::applied(operation.op), accumulator.scalar, sum, fresh), accumulator.sum);
    }
    return true;
}

// Combines the numbers of the first `present` lanes of a warp; the first lane has the result. A lane that is missing
// counts as the identity: the lanes that its own sum would have had are missing, too.
llvm::Value* CudaEmitter::combine_warp(Op kind, Scalar scalar, llvm::Value* number, llvm::Value* lane,
                                       llvm::Value* present) {
    llvm::Value* lanes =
        builder_.CreateLShr(builder_.getInt32(~0u), builder_.CreateSub(builder_.getInt32(kWarp), present));
    if (llvm::Value* at_once = reduced_at_once(kind, scalar, number, lanes)) return at_once;
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        llvm::Value* from = builder_.CreateXor(lane, builder_.getInt32(static_cast<unsigned>(distance)));
        llvm::Value* other = builder_.CreateSelect(builder_.CreateICmpULT(from, present),
                                                   of_other_lane(number, distance, lanes), neutral(kind, scalar));
        number = binary(*ir::applied(kind), scalar, number, other);
    }
    return number;
}

void CudaEmitter::close_accumulators() {
    if (accumulators_.empty()) return;
    const auto number = [&](int value) { return builder_.getInt32(static_cast<unsigned>(value)); };
    const auto at_most_a_warp = [&](llvm::Value* count) {
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, count, number(kWarp));
    };
    llvm::Value *thread = thread_of_block(), *threads = threads_of_block();
    llvm::Value *warp = builder_.CreateLShr(thread, 5), *lane = builder_.CreateAnd(thread, number(kWarp - 1));
    llvm::Value* present = at_most_a_warp(builder_.CreateSub(threads, builder_.CreateShl(warp, 5)));
    llvm::Value* is_first = builder_.CreateICmpEQ(lane, number(0));
    std::vector<std::pair<Accumulator, llvm::GlobalVariable*>> sums;  // and the memory for those of warps
    ir::for_each_operation(kernel_.body, [&](const Operation& operation) {
        const auto found = accumulators_.find(&operation);
        if (found == accumulators_.end()) return;
        for (const Accumulator& accumulator : found->second) {
            auto* type = llvm::ArrayType::get(register_type(accumulator.scalar), kMostWarps);
            auto* memory = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::InternalLinkage,
                                                    llvm::PoisonValue::get(type), function_->getName() + "_sums",
                                                    nullptr, llvm::GlobalValue::NotThreadLocal, kSharedMemory);
            sums.emplace_back(accumulator, memory);
        }
    });
    const auto place = [&](const Accumulator& accumulator, llvm::Value* memory, llvm::Value* of_warp) {
        return builder_.CreateInBoundsGEP(register_type(accumulator.scalar), memory, of_warp);
    };
    llvm::SmallVector<llvm::Value*, 8> of_warps;
    for (const auto& [accumulator, memory] : sums) {
        llvm::Value* sum = builder_.CreateLoad(register_type(accumulator.scalar), accumulator.sum);
        of_warps.push_back(combine_warp(accumulator.kind, accumulator.scalar, sum, lane, present));
    }
    emit_if_true(is_first, "first", [&] {
        for (std::size_t i = 0; i < sums.size(); ++i)
            builder_.CreateStore(of_warps[i], place(sums[i].first, sums[i].second, warp));
    });
    emit_barrier();
    emit_if_true(builder_.CreateICmpEQ(warp, number(0)), "first_warp", [&] {
        llvm::Value* warps = builder_.CreateLShr(builder_.CreateAdd(threads, number(kWarp - 1)), 5);
        llvm::Value* has_warp = builder_.CreateICmpULT(lane, warps);
        llvm::Value* of_warp = builder_.CreateSelect(has_warp, lane, number(0));
        llvm::SmallVector<llvm::Value*, 8> totals;
        for (const auto& [accumulator, memory] : sums) {
            llvm::Value* sum =
                builder_.CreateLoad(register_type(accumulator.scalar), place(accumulator, memory, of_warp));
            sum = builder_.CreateSelect(has_warp, sum, neutral(accumulator.kind, accumulator.scalar));
            totals.push_back(combine_warp(accumulator.kind, accumulator.scalar, sum, lane, at_most_a_warp(threads)));
        }
        emit_if_true(is_first, "first_thread", [&] {
            for (std::size_t i = 0; i < sums.size(); ++i) {
                const Accumulator& accumulator = sums[i].first;
                contribute(accumulator.kind, accumulator.scalar, accumulator.pointer, totals[i]);
            }
        });
    });
}

// ---- copies in shared memory ----

// for i = this thread's number; i < count; i += threads of the block: body(i), all i32
void CudaEmitter::emit_by_block(llvm::Value* count, const std::function<void(llvm::Value* i)>& body) {
    llvm::Value *thread = thread_of_block(), *threads = threads_of_block();
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("each"), *after = new_block("each.done");
    builder_.CreateCondBr(builder_.CreateICmpULT(thread, count), loop, after);
    builder_.SetInsertPoint(loop);
    llvm::PHINode* i = builder_.CreatePHI(builder_.getInt32Ty(), 2);
    i->addIncoming(thread, before);
    body(i);
    llvm::Value* next = builder_.CreateAdd(i, threads);
    i->addIncoming(next, builder_.GetInsertBlock());
    keep_rolled(builder_.CreateCondBr(builder_.CreateICmpULT(next, count), loop, after));
    builder_.SetInsertPoint(after);
}

void CudaEmitter::open_shared_copies() {
    if (plan_.shared_copies.empty()) return;
    llvm::Type *byte = builder_.getInt8Ty(), *word = builder_.getInt32Ty();
    llvm::GlobalVariable* memory = module_.getGlobalVariable(kDynamicShared);
    if (!memory) {
        memory = new llvm::GlobalVariable(module_, llvm::ArrayType::get(byte, 0), false,
                                          llvm::GlobalValue::ExternalLinkage, nullptr, kDynamicShared, nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kSharedMemory);
        memory->setAlignment(llvm::Align(kSharedCopyAlignment));
    }
    any_shared_copy_ = builder_.CreateICmpNE(shared_flags_, i64(0));
    llvm::Value* offset = builder_.getInt32(0);
    std::int64_t flag = 1;
    for (const MemoryRoot& root : plan_.shared_copies) {
        const ir::Value* array = kernel_.parameters()[static_cast<std::size_t>(root.parameter)];
        const LaneValue& leaves = value(array);
        SharedCopy copy{root, plan_.privatised.at(root), array->type.element().scalar()};
        const std::int64_t size = info(copy.scalar).bytes();
        copy.home = leaves.leaves[memory_leaf(root)].scalar;
        copy.is_there = builder_.CreateICmpNE(builder_.CreateAnd(shared_flags_, i64(flag)), i64(0));
        llvm::Value* count = builder_.getInt32(static_cast<unsigned>(array->type.element().size_bytes() / size));
        for (int axis = 0; axis < array->type.ndim(); ++axis) {
            llvm::Value* extent = leaves.leaves[static_cast<std::size_t>(kShapeLeaf + axis)].scalar;
            count = builder_.CreateMul(count, builder_.CreateTrunc(extent, word));
        }
        copy.numbers = builder_.CreateSelect(copy.is_there, count, builder_.getInt32(0));
        copy.memory = builder_.CreateInBoundsGEP(byte, memory, offset);
        const auto unit = static_cast<unsigned>(kSharedCopyAlignment);
        llvm::Value* bytes = builder_.CreateMul(copy.numbers, builder_.getInt32(static_cast<unsigned>(size)));
        bytes =
            builder_.CreateAnd(builder_.CreateAdd(bytes, builder_.getInt32(unit - 1)), builder_.getInt32(~(unit - 1)));
        offset = builder_.CreateAdd(offset, bytes);
        shared_copies_.push_back(copy);
        flag <<= 1;
    }
    emit_if_true(any_shared_copy_, "copies", [&] {
        for (const SharedCopy& copy : shared_copies_)
            emit_by_block(copy.numbers, [&](llvm::Value* i) {
                llvm::Constant* nothing = neutral(copy.kind, copy.scalar);
                builder_.CreateStore(nothing, builder_.CreateGEP(nothing->getType(), copy.memory, i));
            });
        emit_barrier();
    });
}

// Applies an atomic to the copy of the block, if there is one.
bool CudaEmitter::add_to_shared_copy(const Operation& atomic) {
    const MemoryRoot root = memory_of(atomic);
    const auto copy = std::ranges::find(shared_copies_, root, &SharedCopy::root);
    if (copy == shared_copies_.end() || !adds_to_copies_) return false;
    const Address address =
        address_of(atomic.operands[0], llvm::ArrayRef<ir::Value*>(atomic.operands).drop_front().drop_back());
    const std::vector<LeafType> leaves = leaf_types(atomic.operands.back()->type);
    const LaneValue operand = value(atomic.operands.back());
    const auto apply_to = [&](llvm::Value* element) {
        for (std::size_t i = 0; i < leaves.size(); ++i)
            atomic_scalar(atomic.op, leaves[i].scalar, byte_offset(element, leaves[i].offset), nullptr,
                          operand.leaves[i].scalar);
    };
    llvm::Type* number = builder_.getInt64Ty();
    const auto apply_to_copy = [&] {
        llvm::Value* offset = builder_.CreateSub(builder_.CreatePtrToInt(address.base, number),
                                                 builder_.CreatePtrToInt(copy->home, number));
        apply_to(builder_.CreateGEP(builder_.getInt8Ty(), copy->memory,
                                    builder_.CreateTrunc(offset, builder_.getInt32Ty())));
    };
    if (shared_copies_.size() == 1)
        apply_to_copy();
    else
        emit_either(copy->is_there, "shared", apply_to_copy, [&] { apply_to(address.base); });
    return true;
}

void CudaEmitter::close_shared_copies() {
    if (shared_copies_.empty()) return;
    emit_if_true(any_shared_copy_, "copies", [&] {
        emit_barrier();
        for (const SharedCopy& copy : shared_copies_)
            emit_by_block(copy.numbers, [&](llvm::Value* i) {
                llvm::Type* type = register_type(copy.scalar);
                llvm::Value* total = builder_.CreateLoad(type, builder_.CreateGEP(type, copy.memory, i));
                contribute(copy.kind, copy.scalar, builder_.CreateGEP(type, copy.home, i), total);
            });
    });
}

void CudaEmitter::close_block_sums() {
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    builder_.clearFastMathFlags();
    close_accumulators();
    close_shared_copies();
}

void CudaEmitter::describe_block_sums(CudaEntry& entry) const {
    entry.combines = !accumulators_.empty() || !shared_copies_.empty();
    std::vector<Type> types;
    for (const ir::Value* parameter : kernel_.parameters()) types.push_back(parameter->type);
    const ArgumentLayout layout = argument_layout(types);
    for (const SharedCopy& copy : shared_copies_) {
        const auto parameter = static_cast<std::size_t>(copy.root.parameter);
        const Type array = types[parameter];
        const std::vector<LeafType> leaves = leaf_types(array);
        const auto place = [&](std::size_t leaf) { return layout.offsets[parameter] + leaves[leaf].offset; };
        entry.shared_copies.push_back({.data = place(memory_leaf(copy.root)),
                                       .shape = place(kShapeLeaf),
                                       .strides = place(static_cast<std::size_t>(stride_leaf(array))),
                                       .ndim = array.ndim(),
                                       .element_bytes = static_cast<std::int32_t>(array.element().size_bytes())});
    }
}

}  // namespace weft::codegen
