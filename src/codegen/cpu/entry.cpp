// The entry point of a kernel: void symbol(arguments, context, begin, end).
//
// before
//     for thread in begin .. end: body(coordinates of thread)
// after, with W lanes
//     arguments loaded once; coordinates of `begin` by division, once
//     for each row of the last axis that [begin, end) touches:
//         for k in first .. last - W + 1 step W:   body, all lanes active
//         if some threads are left:                body, the first few lanes active
//         step to the next row by incrementing, without division
//
// The body of a small kernel without loops is emitted twice, so that the loop over its threads has no masks. Any other
// body is emitted once, masked, which halves the time to compile it. Only its accesses test whether the group is full
// (copied_access.cpp): arithmetic costs the same with a mask and without, and a loop in the body costs more than that.
#include <llvm/IR/MDBuilder.h>

#include "codegen/cpu/emitter.h"

namespace weft::codegen {

namespace {

// The most leaves of a body that is emitted a second time, for the tail.
constexpr int kSmallBody = 64;

}  // namespace

void CpuEmitter::emit_entry(KernelEntry& entry) {
    checked_ = callees_.checked;
    llvm::Type* pointer = builder_.getPtrTy();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(),
                                         {pointer, pointer, builder_.getInt64Ty(), builder_.getInt64Ty()}, false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry.symbol, module_);
    function->setDoesNotThrow();
    for (unsigned i : {0u, 1u}) {
        function->addParamAttr(i, llvm::Attribute::NoAlias);
        function->addParamAttr(i, llvm::Attribute::ReadOnly);
    }
    llvm::Value *arguments = function->getArg(0), *context = function->getArg(1);
    llvm::Value *begin = function->getArg(2), *end = function->getArg(3);
    open_function(function);
    if (options_.noalias) alias_scopes_.open(kernel_, context_);
    load_arguments(arguments);
    load_dimensions(context);
    open_accumulators();
    find_boundaries(begin, end);
    llvm::BasicBlock *work = new_block("work"), *done = new_block("done");
    leave_ = done;
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), work, done);
    builder_.SetInsertPoint(work);
    emit_chunk(begin, end);
    builder_.CreateBr(done);
    builder_.SetInsertPoint(done);
    if (has_stacks_) call_runtime(Import::weft_stack_trim, {});
    builder_.CreateRetVoid();
    function_->addFnAttr(kThreadLoops, std::to_string(thread_loops_));
    if (debug_) debug_->finalize();
    describe(entry.cpu());
}

// The facts that launches on a CPU need.
void CpuEmitter::describe(CpuEntry& entry) const {
    entry.lanes = lanes_.count;
    entry.boundary = static_cast<std::int32_t>(2 * plan_.halo.most);
    entry.cost = plan_.cost;
    entry.cost_exclusive = plan_.cost_when_alone;
    entry.has_atomics = has_atomics_ || callees_.have_atomics;
    entry.finds_objects = finds_objects_ || callees_.find_objects;
    entry.has_long_loops = plan_.has_long_loops || callees_.have_long_loops;
    entry.can_fuse = plan_.own.has_value() && !entry.has_atomics;
    if (entry.can_fuse) entry.own_arrays.assign(plan_.own->begin(), plan_.own->end());
    entry.ordered = plan_.depends_on_order || callees_.depend_on_order;
}

void CpuEmitter::emit_threads(llvm::Value* begin, llvm::Value* end) {
    if (kernel_.tid_rank <= 1)
        emit_segment(begin, end);
    else
        emit_rows(begin, end);
}

void CpuEmitter::load_dimensions(llvm::Value* context) {
    llvm::MDNode* nothing = llvm::MDNode::get(context_, {});
    for (int axis = 0; axis < kernel_.tid_rank; ++axis) {
        llvm::Value* address = builder_.CreateConstInBoundsGEP1_64(
            builder_.getInt8Ty(), context, offsetof(LaunchContext, dim) + 8 * static_cast<std::uint64_t>(axis));
        llvm::LoadInst* load = builder_.CreateAlignedLoad(builder_.getInt64Ty(), address, llvm::Align(8));
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
        dims_.push_back(load);
    }
    coordinates_.assign(static_cast<std::size_t>(std::max(1, kernel_.tid_rank)), i64(0));
    launch_ = context;
}

void CpuEmitter::emit_rows(llvm::Value* begin, llvm::Value* end) {
    std::size_t rank = dims_.size();
    // The coordinates of `begin`, last axis first.
    llvm::SmallVector<llvm::Value*, kMaxDims> start(rank);
    llvm::Value* flat = begin;
    for (std::size_t axis = rank; axis-- > 1;) {
        start[axis] = builder_.CreateURem(flat, dims_[axis]);
        flat = builder_.CreateUDiv(flat, dims_[axis]);
    }
    start[0] = flat;

    llvm::BasicBlock *before = builder_.GetInsertBlock(), *row = new_block("row"), *after = new_block("rows.done");
    llvm::Value* count = builder_.CreateSub(end, begin);
    builder_.CreateBr(row);
    builder_.SetInsertPoint(row);
    ++thread_loops_;
    llvm::SmallVector<llvm::PHINode*, kMaxDims> at(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
        at[axis] = builder_.CreatePHI(builder_.getInt64Ty(), 2);
        at[axis]->addIncoming(start[axis], before);
        coordinates_[axis] = at[axis];
    }
    llvm::PHINode* left = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    left->addIncoming(count, before);
    llvm::Value* room = builder_.CreateSub(dims_[rank - 1], at[rank - 1]);
    llvm::Value* length = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, room, left);
    emit_segment(at[rank - 1], builder_.CreateAdd(at[rank - 1], length));

    // The next row: the axis before the last moves on, and carries into the ones before it.
    llvm::Value* carry = builder_.getTrue();
    llvm::BasicBlock* latch = builder_.GetInsertBlock();
    for (std::size_t axis = rank - 1; axis-- > 0;) {
        llvm::Value* moved = builder_.CreateAdd(at[axis], builder_.CreateZExt(carry, builder_.getInt64Ty()));
        llvm::Value* wraps = axis > 0 ? builder_.CreateICmpEQ(moved, dims_[axis]) : builder_.getFalse();
        at[axis]->addIncoming(axis > 0 ? builder_.CreateSelect(wraps, i64(0), moved) : moved, latch);
        carry = wraps;
    }
    at[rank - 1]->addIncoming(i64(0), latch);
    llvm::Value* rest = builder_.CreateSub(left, length);
    left->addIncoming(rest, latch);
    builder_.CreateCondBr(builder_.CreateICmpSGT(rest, i64(0)), row, after);
    builder_.SetInsertPoint(after);
}

// Runs the threads first .. last of the last axis, at least one.
void CpuEmitter::emit_segment(llvm::Value* first, llvm::Value* last) {
    bool twice = lanes_.count == 1 || worth_writing_twice();
    llvm::Value* group = i64(lanes_.count);
    llvm::Value* length = builder_.CreateSub(last, first);
    llvm::Value* full_length = twice ? builder_.CreateAnd(length, i64(-lanes_.count)) : length;
    llvm::Value* full_end = builder_.CreateAdd(first, full_length);

    llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("group"), *after = new_block("groups.done");
    if (lanes_.count == 1 || !twice)
        builder_.CreateBr(loop);
    else
        builder_.CreateCondBr(builder_.CreateICmpSGT(full_length, i64(0)), loop, after);
    builder_.SetInsertPoint(loop);
    ++thread_loops_;
    llvm::PHINode* k = builder_.CreatePHI(builder_.getInt64Ty(), 2, "k");
    k->addIncoming(first, before);
    // The lanes of the threads at, at + 1, ... that come before `last`.
    auto mask_from = [&](llvm::Value* at) {
        llvm::Value* rest = builder_.CreateTrunc(
            builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, builder_.CreateSub(last, at), group),
            builder_.getInt32Ty());
        return builder_.CreateICmpSLT(lanes_.iota(builder_.getInt32Ty()), lanes_.splat(rest));
    };
    llvm::Value* next = builder_.CreateAdd(k, group, "", true, true);
    emit_group(k, twice ? nullptr : mask_from(k));
    k->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateICmpSLT(next, full_end), loop, after);
    builder_.SetInsertPoint(after);
    if (lanes_.count == 1 || !twice) return;

    llvm::BasicBlock *tail = new_block("tail"), *tail_done = new_block("tail.done");
    builder_.CreateCondBr(builder_.CreateICmpSLT(full_end, last), tail, tail_done);
    builder_.SetInsertPoint(tail);
    in_tail_ = true;
    emit_group(full_end, mask_from(full_end));
    in_tail_ = false;
    builder_.CreateBr(tail_done);
    builder_.SetInsertPoint(tail_done);
}

void CpuEmitter::emit_group(llvm::Value* first_lane, llvm::Value* mask) {
    llvm::Value* row_start = coordinates_.back();
    coordinates_.back() = first_lane;
    mask_ = mask;
    emit_region(kernel_.body);
    mask_ = nullptr;
    coordinates_.back() = row_start;
}

// Private copies of cells (privatised.cpp) are filled by unmasked code only.
bool CpuEmitter::worth_writing_twice() const {
    return (plan_.size.leaves <= kSmallBody && !plan_.size.has_loops) || !private_memories_.empty();
}

}  // namespace weft::codegen
