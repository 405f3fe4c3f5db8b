// Thread coordinates, print, raise, and the checks of debug mode: bounds, divisors, assertions.
#include <llvm/IR/DebugInfoMetadata.h>

#include <algorithm>

#include "codegen/emitter.h"
#include "ir/indices.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Operation;

void Emitter::emit_tid(const Operation& operation) {
    std::size_t axis = static_cast<std::size_t>(operation.ints[0]);
    llvm::Value* coordinate = coordinates_[axis];
    bool last = axis + 1 == coordinates_.size();
    Leaf leaf =
        Leaf::of_linear(builder_.CreateTrunc(coordinate, builder_.getInt32Ty()), last && lanes_.count > 1 ? 1 : 0);
    leaf.wide = coordinate;
    set(operation.result(), leaf);
}

// Applies the default argument promotions of C's variadic functions.
llvm::Value* Emitter::promoted(llvm::Value* number, Scalar scalar) {
    if (info(scalar).is_float()) return conversions_.cast(number, scalar, Scalar::f64);
    return info(scalar).bits < 32 ? conversions_.cast(number, scalar, Scalar::i32) : number;
}

void Emitter::store_word(llvm::Value* number, llvm::Value* at) {
    llvm::Value* word = number->getType()->isDoubleTy() ? builder_.CreateBitCast(number, builder_.getInt64Ty())
                                                        : builder_.CreateSExtOrTrunc(number, builder_.getInt64Ty());
    builder_.CreateAlignedStore(word, at, llvm::Align(8));
}

// The operands, promoted to integers of 32 or 64 bits and doubles, in words of 8 bytes; those of an array are its
// elements. Returns the number of words, too.
std::pair<llvm::Value*, std::int64_t> Emitter::printed_words(const Operation& operation, llvm::Value* lane) {
    const auto count_of = [](const ir::Value* operand) {
        return operand->type.is_array() ? operand->definition->ints[0] : leaf_count(operand->type);
    };
    std::int64_t count = 0;
    for (const ir::Value* operand : operation.operands) count += count_of(operand);
    llvm::Value* words = stack_slot(bytes_type(8 * std::max<std::int64_t>(1, count)), llvm::Align(8));
    std::int64_t first = 0;
    for (const ir::Value* operand : operation.operands) {
        llvm::Value* start = byte_offset(words, 8 * first);
        first += count_of(operand);
        if (!operand->type.is_array()) {
            std::int64_t at = 0;
            for (Leaf& leaf : value(operand).leaves)
                store_word(promoted(lane_of(leaf, lane), operand->type.scalar()), byte_offset(start, 8 * at++));
            continue;
        }
        const LeafType type = leaf_types(operand->type.element())[0];
        llvm::Value* source = pointer_of_lane(address_of(operand, {}, kDataLeaf), 0, lane);
        llvm::Value* stride = value(operand).leaves[static_cast<std::size_t>(stride_leaf(operand->type))].scalar;
        llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("words"),
                         *after = new_block("words.done");
        builder_.CreateBr(loop);
        builder_.SetInsertPoint(loop);
        llvm::PHINode* k = builder_.CreatePHI(builder_.getInt64Ty(), 2);
        k->addIncoming(i64(0), before);
        llvm::Value* element = builder_.CreateGEP(builder_.getInt8Ty(), source, builder_.CreateMul(k, stride));
        llvm::Value* number = builder_.CreateAlignedLoad(memory_type(type), element,
                                                         llvm::Align(static_cast<std::uint64_t>(size_of(type))));
        store_word(promoted(number, type.scalar), builder_.CreateGEP(builder_.getInt64Ty(), start, k));
        llvm::Value* next = builder_.CreateAdd(k, i64(1));
        k->addIncoming(next, builder_.GetInsertBlock());
        builder_.CreateCondBr(builder_.CreateICmpULT(next, i64(count_of(operand))), loop, after);
        builder_.SetInsertPoint(after);
    }
    return {words, count};
}

void Emitter::emit_print(const Operation& operation) {
    llvm::Value* format = builder_.CreateGlobalString(operation.text);
    for_each_active_lane(nullptr, [&](llvm::Value* lane, llvm::Value*) -> llvm::Value* {
        const auto [words, count] = printed_words(operation, lane);
        report_print(format, words, count);
        return nullptr;
    });
}

// The first thread that gets here reports; its whole chunk of threads ends.
void Emitter::emit_raise(const Operation& operation) {
    const std::uint32_t number = new_site(operation);
    llvm::BasicBlock *report = new_block("raise"), *after = new_block("goes_on");
    builder_.CreateCondBr(mask_ ? lanes_.any(mask_) : builder_.getTrue(), report, after);
    builder_.SetInsertPoint(report);
    llvm::Value* lane = mask_ ? first_lane(mask_) : builder_.getInt32(0);
    llvm::Value *thread = thread_number(lane), *format = builder_.CreateGlobalString(operation.text);
    const auto [words, count] = printed_words(operation, lane);
    report_raise(thread, number, format, words, count);
    builder_.CreateBr(leave_);
    builder_.SetInsertPoint(after);
}

llvm::Value* Emitter::first_lane(llvm::Value* mask) {
    llvm::Value* bits = builder_.CreateBitCast(mask, builder_.getIntNTy(static_cast<unsigned>(lanes_.count)));
    return builder_.CreateZExtOrTrunc(builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, builder_.getTrue()),
                                      builder_.getInt32Ty());
}

// The thread's number in the grid.
llvm::Value* Emitter::thread_number(llvm::Value* lane) {
    if (thread_of_caller_) return thread_of_caller_;
    llvm::Value* thread = coordinates_[0];
    for (std::size_t at = 1; at < coordinates_.size(); ++at)
        thread = builder_.CreateAdd(builder_.CreateMul(thread, dims_[at]), coordinates_[at]);
    return lane ? builder_.CreateAdd(thread, builder_.CreateZExt(lane, builder_.getInt64Ty())) : thread;
}

std::uint32_t Emitter::new_site(const Operation& operation) {
    std::vector<const Operation*>& checked = kernel_.is_kernel ? checked_ : callees_.checked;
    checked.push_back(&operation);
    return static_cast<std::uint32_t>(checked.size() - 1);
}

void Emitter::check(const Operation& operation, llvm::Value* ok, FaultKind kind, llvm::Value* index, llvm::Value* size,
                    int axis, llvm::BasicBlock* otherwise, llvm::Value* broken) {
    if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(ok); known && known->isOne()) return;
    const std::uint32_t number = new_site(operation);

    llvm::BasicBlock *report = new_block("fault"), *after = new_block("checked");
    builder_.CreateCondBr(ok, after, report, otherwise ? mostly_ : nullptr);
    builder_.SetInsertPoint(report);
    llvm::Value* thread = thread_number(broken && lanes_.count > 1 ? first_lane(broken) : nullptr);
    report_fault({kind, thread, index, size, axis, number});
    builder_.CreateBr(otherwise ? otherwise : after);
    builder_.SetInsertPoint(after);
}

llvm::Value* Emitter::check_access(const Operation& operation, llvm::ArrayRef<ir::Value*> indices,
                                   std::size_t first_axis) {
    const ir::Value* array = operation.operands[0];
    LaneValue& view = value(array);
    llvm::Value* data = view.leaves[kDataLeaf].scalar;
    llvm::Value* ok = builder_.getTrue();
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const std::size_t axis = first_axis + i;
        llvm::Value* index = wide(leaf(indices[i]), indices[i]->type.scalar());
        llvm::Value* size = view.leaves[kShapeLeaf + axis].scalar;
        llvm::Value* inside = builder_.CreateICmpULT(index, size);
        if (const ir::Value* written = ir::as_written(indices[i])) index = wide(leaf(written), written->type.scalar());
        // An array without elements has no data either; the fault for it is an index out of range.
        check(operation, builder_.CreateOr(inside, builder_.CreateNot(ok)), FaultKind::bounds, index, size,
              static_cast<int>(axis));
        ok = builder_.CreateAnd(ok, inside);
    }
    llvm::Value* there = builder_.CreateICmpNE(data, llvm::Constant::getNullValue(data->getType()));
    check(operation, builder_.CreateOr(there, builder_.CreateNot(ok)), FaultKind::null_array, i64(0), i64(0), 0);
    return builder_.CreateAnd(ok, there);
}

void Emitter::emit_require(const Operation& operation, FaultKind kind) {
    Leaf& holds = leaf(operation.operands[0]);
    llvm::Value *ok = holds.scalar, *broken = nullptr;
    if (holds.varying()) {
        broken = builder_.CreateAnd(builder_.CreateNot(lanes_.here(holds.vector)), active_lanes());
        ok = builder_.CreateNot(lanes_.any(broken));
    }
    check(operation, ok, kind, i64(0), i64(0), 0, nullptr, broken);
}

void Emitter::emit_assert(const Operation& operation) {
    if (!options_.debug) return;
    check(operation, leaf(operation.operands[0]).scalar, FaultKind::assertion, i64(0), i64(0), 0);
}

// ---- source lines of the user's code ----

}  // namespace weft::codegen
