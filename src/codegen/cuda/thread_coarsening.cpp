// The loops of an entry over its elements (binary/cuda_abi.h). transform/analysis/cost/thread_coarsening.h chooses the
// number of elements.
//
//     if the launch asks for coarsening:
//         first, step, end = this thread's elements
//         if all of them exist, and pass the test at the start of the kernel:
//             bodies of all of them, in step
//             return
//     else:
//         first, step, end = this thread's number in the launch, the number of threads, the count
//     for index in first .. end step `step`:
//         coordinates of `index`, by multiplications
//         body
//
// If the threads combine contributions, rounds of several elements come before the second loop (emit_rounds()).
//
// In the second case any grid runs all elements: one per thread, or fewer threads that take several. Loop indices have
// 64 bits. Those of several elements have 32, of which one instruction makes an address (IMAD.WIDE), not two or three.
//
// The C++ of a @wp.func_native may have barriers and shared memory. A kernel that calls some takes no elements in step
// (they would share one call's memory), and has a barrier before each further round: all threads of a block that have
// one come there, and the others have ended. So no thread writes shared memory that another still reads.
//
// Bodies in step: each operation is emitted for all elements in turn, before the next operation. So the loads of all
// elements are issued before the first one is awaited. A GPU needs this to reach its bandwidth if an element loads few
// bytes. Neighbours on an axis also load their common values once. The order of threads is unspecified, and so is that
// of the elements of one thread.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "binary/cuda_abi.h"
#include "codegen/cuda/emitter.h"

namespace weft::codegen {

using ir::Operation;

void CudaEmitter::emit_elements(int together, bool whole_blocks) {
    const auto sreg = [&](llvm::Intrinsic::ID which) { return builder_.CreateIntrinsic(which, {}); };
    llvm::BasicBlock *element = new_block("element"), *done = new_block("done");
    leave_ = done;
    Position at;
    at.threads = sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
    at.thread = sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    at.block[0] = sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    llvm::SmallVector<Range, 2> ranges;
    if (together > 1) {
        llvm::BasicBlock *several = new_block("together"), *apart = new_block("apart"), *one_by_one = new_block("one");
        builder_.CreateCondBr(is_together_, several, apart);
        builder_.SetInsertPoint(several);
        if (kernel_.tid_rank > 1) {
            at.block[1] = sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y);
            at.block[2] = sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z);
        }
        const LaneValues parameters = values_;
        const Range range = emit_together(together, at, one_by_one);
        builder_.CreateBr(done);
        values_ = parameters;
        builder_.SetInsertPoint(one_by_one);
        ranges.push_back({wide_index(range.first), wide_index(range.step), wide_index(range.end), one_by_one});
        builder_.CreateCondBr(builder_.CreateICmpSLT(range.first, range.end), element, done);
        builder_.SetInsertPoint(apart);
    }
    llvm::Value* threads = wide_index(at.threads);
    first_ = wide_index(sum(product(wide_index(at.block[0]), threads), wide_index(at.thread)));
    threads_ = wide_index(product(wide_index(sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x)), threads));
    if (shared_copies_.empty()) {
        emit_one_by_one(element, std::move(ranges), done, whole_blocks);
    } else {  // the loops once with the copies, and once without
        llvm::BasicBlock *copied = new_block("copied"), *uncopied = new_block("uncopied");
        builder_.CreateCondBr(any_shared_copy_, copied, uncopied);
        const LaneValues parameters = values_;
        for (const bool adds_to_copies : {true, false}) {
            builder_.SetInsertPoint(adds_to_copies ? copied : uncopied);
            adds_to_copies_ = adds_to_copies;
            emit_one_by_one(adds_to_copies ? element : new_block("element"), {}, done, whole_blocks);
            values_ = parameters;
        }
    }
    builder_.SetInsertPoint(done);
    close_block_sums();
    builder_.CreateRetVoid();
}

// Arithmetic of indices, which does not overflow.
llvm::Value* CudaEmitter::sum(llvm::Value* a, llvm::Value* b) { return builder_.CreateAdd(a, b, "", true, true); }
llvm::Value* CudaEmitter::product(llvm::Value* a, llvm::Value* b) { return builder_.CreateMul(a, b, "", true, true); }

// A number that is not negative.
llvm::Value* CudaEmitter::wide_index(llvm::Value* number) {
    return builder_.CreateZExt(number, builder_.getInt64Ty(), "", /*IsNonNeg=*/true);
}
llvm::Value* CudaEmitter::short_index(llvm::Value* number) {
    return builder_.CreateTrunc(number, builder_.getInt32Ty());
}

// ---- bodies in step ----

// The state of one element while its body is emitted.
struct CudaEmitter::Element {
    LaneValues values;
    llvm::SmallVector<llvm::Value*, kMaxDims> coordinates;
};

// Branches to `one_by_one`, before any effect, if one of the elements does not exist or fails the kernel's test.
// Returns the range for that case.
CudaEmitter::Range CudaEmitter::emit_together(int together, const Position& at, llvm::BasicBlock* one_by_one) {
    const std::size_t rank = coordinates_.size();
    std::vector<Element> elements(static_cast<std::size_t>(together));
    // The launch has at most kMostTogether elements.
    const auto number = [&](std::int64_t value) { return builder_.getInt32(static_cast<std::uint32_t>(value)); };
    Range range;
    range.from = one_by_one;
    llvm::Value* all_exist = nullptr;
    if (rank == 1) {
        llvm::Value *elements_of_block = product(at.threads, number(together)), *count = short_index(count_);
        llvm::Value* begin = product(at.block[0], elements_of_block);
        range = {sum(begin, at.thread), at.threads, nullptr, one_by_one};
        range.end = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, sum(begin, elements_of_block), count);
        llvm::Value* index = range.first;
        for (Element& element : elements) {
            if (&element != &elements.front()) index = sum(index, at.threads);
            element.coordinates.assign({wide_index(index)});
        }
        all_exist = builder_.CreateICmpSLT(index, count);
    } else {
        llvm::Value* column = sum(product(at.block[0], at.threads), at.thread);
        llvm::Value* row = product(at.block[1], number(together));
        llvm::Value* last_row = sum(row, number(together));
        // The axes before the last two: coordinates from the block's number.
        coordinates_.truncate(rank - 2);
        if (rank > 2) find_short_coordinates(at.block[2]);
        for (int i = 0; i < together; ++i) {
            Element& element = elements[static_cast<std::size_t>(i)];
            element.coordinates = coordinates_;
            element.coordinates.push_back(wide_index(i == 0 ? row : sum(row, number(i))));
            element.coordinates.push_back(wide_index(column));
        }
        coordinates_.resize(rank);
        llvm::Value *rows = short_index(dims_[rank - 2]), *columns = short_index(dims_[rank - 1]);
        llvm::Value* inside = builder_.CreateICmpSLT(column, columns);
        all_exist = builder_.CreateAnd(inside, builder_.CreateICmpSLE(last_row, rows));
        llvm::Value* before = product(at.block[2], rows);
        const auto begin_of = [&](llvm::Value* of) { return product(sum(before, of), columns); };
        range.first = sum(begin_of(row), column);
        range.step = columns;
        // No elements are left behind the last column.
        range.end = builder_.CreateSelect(
            inside, begin_of(builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, last_row, rows)), number(0));
    }
    llvm::BasicBlock* all = new_block("all");
    builder_.CreateCondBr(all_exist, all, one_by_one);
    builder_.SetInsertPoint(all);
    for (Element& element : elements) element.values = values_;
    emit_in_step(kernel_.body, elements, one_by_one);
    return range;
}

// The loop over the ranges, the first of which is entered from elsewhere. A last range is added: the elements that
// threads of any grid take one by one, entered from here.
void CudaEmitter::emit_one_by_one(llvm::BasicBlock* element, llvm::SmallVector<Range, 2> ranges, llvm::BasicBlock* done,
                                  bool whole_blocks) {
    llvm::Value* first = first_;
    if (plan_.coarsening.combines && !whole_blocks) first = emit_rounds(plan_.coarsening.elements);
    llvm::Value* count = wide_index(count_);
    first = wide_index(first);
    ranges.push_back({first, wide_index(threads_), count, builder_.GetInsertBlock()});
    builder_.CreateCondBr(builder_.CreateICmpSLT(first, count), element, done);

    builder_.SetInsertPoint(element);
    const auto of_ranges = [&](llvm::Value* Range::* part) {
        llvm::PHINode* phi = builder_.CreatePHI(count->getType(), 3);
        for (const Range& range : ranges) phi->addIncoming(range.*part, range.from);
        return phi;
    };
    llvm::PHINode *index = of_ranges(&Range::first), *step = of_ranges(&Range::step), *end = of_ranges(&Range::end);
    find_coordinates(index);
    emit_region(kernel_.body);
    llvm::Value* next = sum(index, step);
    llvm::Value* has_next = builder_.CreateICmpSLT(next, end);
    if (whole_blocks) {
        llvm::BasicBlock* again = new_block("again");
        builder_.CreateCondBr(has_next, again, done);
        builder_.SetInsertPoint(again);
        builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {builder_.getInt32(0)});
        builder_.CreateBr(element);
    } else {
        builder_.CreateCondBr(has_next, element, done);
    }
    llvm::BasicBlock* last = builder_.GetInsertBlock();
    index->addIncoming(next, last);
    step->addIncoming(step, last);
    end->addIncoming(end, last);
}

// Rounds of a kernel whose threads combine their contributions: in each, a thread has several elements, as many apart
// as there are threads. Returns the first element behind them. Indices have 32 bits: elements behind the first
// kMostTogether take no part.
llvm::Value* CudaEmitter::emit_rounds(int together) {
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *rounds = new_block("rounds"), *all = new_block("all"),
                     *left = new_block("left"), *rest = new_block("rest");
    llvm::Value* last = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, count_, i64(kMostTogether));
    llvm::Value* limit = builder_.CreateNSWSub(last, product(threads_, i64(together - 1)));  // of a first element
    llvm::Value *begin = short_index(first_), *short_limit = short_index(limit), *threads = short_index(threads_),
                *of_round = short_index(product(threads_, i64(together)));
    builder_.CreateCondBr(builder_.CreateICmpSLT(first_, limit), rounds, rest);
    builder_.SetInsertPoint(rounds);
    llvm::PHINode* index = builder_.CreatePHI(builder_.getInt32Ty(), 2);
    index->addIncoming(begin, before);
    builder_.CreateCondBr(builder_.CreateICmpSLT(index, short_limit), all, left);
    builder_.SetInsertPoint(all);
    const LaneValues parameters = values_;
    std::vector<Element> elements(static_cast<std::size_t>(together));
    llvm::Value* at = index;
    for (Element& element : elements) {
        if (&element != &elements.front()) at = sum(at, threads);
        find_coordinates(at);
        element.coordinates = coordinates_;
        element.values = parameters;
    }
    emit_in_step(kernel_.body, elements, left);
    index->addIncoming(sum(index, of_round), builder_.GetInsertBlock());
    keep_rolled(builder_.CreateBr(rounds));
    values_ = parameters;
    builder_.SetInsertPoint(left);
    llvm::Value* next = wide_index(index);
    builder_.CreateBr(rest);
    builder_.SetInsertPoint(rest);
    llvm::PHINode* first = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    first->addIncoming(first_, before);
    first->addIncoming(next, left);
    return first;
}

void CudaEmitter::emit_in_step(const ir::Region& region, llvm::MutableArrayRef<Element> elements,
                               llvm::BasicBlock* one_by_one) {
    const auto for_each = [&](const auto& write) {
        for (Element& element : elements) {
            std::swap(values_, element.values);
            std::swap(coordinates_, element.coordinates);
            write();
            std::swap(values_, element.values);
            std::swap(coordinates_, element.coordinates);
        }
    };
    for (const Operation* operation : region.operations) {
        const auto guard = plan_.coarsening.guarded.find(operation);
        if (guard == plan_.coarsening.guarded.end()) {
            for_each([&] { emit_in_place(*operation); });
            continue;
        }
        llvm::Value* all_pass = nullptr;
        for_each([&] {
            llvm::Value* passes = leaf(operation->operands[0]).scalar;
            if (guard->second != &operation->body(0)) passes = builder_.CreateNot(passes);
            all_pass = all_pass ? builder_.CreateAnd(all_pass, passes) : passes;
        });
        llvm::BasicBlock* pass = new_block("pass");
        builder_.CreateCondBr(all_pass, pass, one_by_one);
        builder_.SetInsertPoint(pass);
        emit_in_step(*guard->second, elements, one_by_one);
    }
}

// ---- coordinates ----

// Computed from the last axis to the first, which gets the remaining quotient.
void CudaEmitter::find_coordinates(llvm::Value* index) {
    if (coordinates_.size() == 1) {
        coordinates_[0] = wide_index(index);
        return;
    }
    if (index->getType()->isIntegerTy(32)) return find_short_coordinates(index);
    llvm::Type* number = builder_.getInt64Ty();
    llvm::SmallVector<llvm::Value*, kMaxDims> short_ones;
    llvm::Value* is_short = builder_.CreateICmpSLE(count_, i64(std::numeric_limits<std::int32_t>::max()));
    const auto [from_short, from_long] = emit_either(
        is_short, "short",
        [&] {
            find_short_coordinates(short_index(index));
            short_ones = coordinates_;
        },
        [&] {
            llvm::Type* wide = builder_.getInt128Ty();
            llvm::Value* rest = index;
            for (std::size_t axis = coordinates_.size(); axis-- > 1;) {
                llvm::Value* product =
                    builder_.CreateMul(builder_.CreateZExt(rest, wide), builder_.CreateZExt(multipliers_[axis], wide));
                llvm::Value* high = builder_.CreateTrunc(builder_.CreateLShr(product, 64), number);
                llvm::Value* quotient =
                    builder_.CreateSelect(builder_.CreateICmpEQ(dims_[axis], i64(1)), rest,
                                          builder_.CreateLShr(high, builder_.CreateZExt(shifts_[axis], number)));
                coordinates_[axis] = builder_.CreateSub(rest, builder_.CreateMul(quotient, dims_[axis]));
                rest = quotient;
            }
            coordinates_[0] = rest;
        });
    for (std::size_t axis = 0; axis < coordinates_.size(); ++axis) {
        llvm::PHINode* coordinate = builder_.CreatePHI(number, 2);
        coordinate->addIncoming(short_ones[axis], from_short);
        coordinate->addIncoming(coordinates_[axis], from_long);
        coordinates_[axis] = coordinate;
    }
}

// The same for a 32-bit index that is not negative.
void CudaEmitter::find_short_coordinates(llvm::Value* index) {
    llvm::Type *number = builder_.getInt32Ty(), *wide = builder_.getInt64Ty();
    for (std::size_t axis = coordinates_.size(); axis-- > 1;) {
        llvm::Value* extent = builder_.CreateTrunc(dims_[axis], number);
        // As a product of 64 bits it would stay one after LLVM moved its factors out of the block.
        llvm::Value* high =
            builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_mulhi_ui, {}, {index, short_multipliers_[axis]});
        llvm::Value* quotient = builder_.CreateSelect(builder_.CreateICmpEQ(extent, builder_.getInt32(1)), index,
                                                      builder_.CreateLShr(high, shifts_[axis]));
        coordinates_[axis] =
            builder_.CreateZExt(builder_.CreateSub(index, builder_.CreateMul(quotient, extent)), wide, "", true);
        index = quotient;
    }
    coordinates_[0] = builder_.CreateZExt(index, wide, "", true);
}

}  // namespace weft::codegen
