// Negative indices, which count from the end (ir/indices.h writes them as a choice). Few indices are negative, so each
// way here is a branch that is hardly ever taken.
#include <llvm/IR/MDBuilder.h>

#include <array>

#include "codegen/emitter.h"
#include "ir/indices.h"

namespace weft::codegen {

using ir::Operation;

// A well-predicted branch costs less than the wait for a select. An index that is not negative is zero-extended, which
// is free after a load.
Leaf Emitter::from_end(const Operation& choice, llvm::Value* is_negative, Leaf& index, Leaf& extent) {
    const Scalar scalar = choice.result()->type.scalar();
    if (machine_.short_indices && !options_.huge && index.scalar->getType()->isIntegerTy(32)) {
        // A dimension has fewer than 2^31 elements, so that nothing overflows.
        llvm::Value* counted =
            builder_.CreateAdd(index.scalar, builder_.CreateSExtOrTrunc(extent.scalar, index.scalar->getType()));
        // Of a valid index and this sum, the lesser unsigned number is the place: a negative number is the greater one.
        // sm_90 has one instruction for sum and minimum.
        return Leaf::of_scalar(plan_.choices_of_accesses.contains(&choice)
                                   ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index.scalar, counted)
                                   : builder_.CreateSelect(is_negative, counted, index.scalar));
    }
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *end = new_block("from_end"), *after = new_block("index");
    llvm::Type* wide_type = builder_.getInt64Ty();
    const bool is_short = index.scalar->getType() != wide_type;
    llvm::Value* from_start = index.scalar;
    if (is_short) from_start = index.wide ? index.wide : builder_.CreateZExt(index.scalar, wide_type, "", true);
    builder_.CreateCondBr(is_negative, end, after, llvm::MDBuilder(context_).createUnlikelyBranchWeights());
    builder_.SetInsertPoint(end);
    llvm::Value* wide_counted = builder_.CreateAdd(wide(index, scalar), wide(extent, scalar));
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    llvm::PHINode* at = builder_.CreatePHI(wide_type, 2);
    at->addIncoming(from_start, before);
    at->addIncoming(wide_counted, end);
    if (!is_short) return Leaf::of_scalar(at);
    Leaf result = Leaf::of_scalar(builder_.CreateTrunc(at, index.scalar->getType()));
    result.wide = at;
    return result;
}

// The same for lanes: the select is skipped if no lane's index is negative.
LaneValue Emitter::from_end_in_lanes(llvm::Value* is_negative, LaneValue& counted, LaneValue& index) {
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *end = new_block("from_end"), *after = new_block("index");
    LaneValue plain{index.type, {Leaf::of_vector(vector(index.leaves[0]))}, {}};
    builder_.CreateCondBr(lanes_.any(lanes_.both(mask_, lanes_.here(is_negative))), end, after,
                          llvm::MDBuilder(context_).createUnlikelyBranchWeights());
    builder_.SetInsertPoint(end);
    LaneValue chosen = blend(is_negative, counted, index);
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    return merge(index.type, true, plain, before, chosen, end);
}

// The index as written, if it is linear in the lanes and only the handling of negative values makes it varying; else
// null.
const ir::Value* Emitter::linear_but_for_end(const ir::Value* index) const {
    const ir::Value* written = ir::as_written(index);
    using Kind = transform::LaneShape::Kind;
    return written && shape(written).kind == Kind::linear && shape(index).kind == Kind::varying ? written : nullptr;
}

// Whether lanes would be at equal distances if no index were negative.
bool Emitter::counts_from_end_in_few(const ir::Value* array, llvm::ArrayRef<ir::Value*> indices) {
    if (lanes_.count == 1) return false;
    bool any = false;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
        const bool counts = linear_but_for_end(indices[axis]) && leaf(indices[axis]).varying();
        if (!counts && leaf(indices[axis]).varying()) return false;
        any |= counts;
    }
    LaneValue& view = value(array);
    if (!any || !view.leaves[kDataLeaf].uniform()) return false;
    for (std::size_t axis = 0; axis < indices.size(); ++axis)
        if (!view.leaves[static_cast<std::size_t>(stride_leaf(array->type)) + axis].uniform()) return false;
    return true;
}

// Emits `plain`, with the indices as written, for groups without negative indices, and `any` for the others.
std::pair<llvm::BasicBlock*, llvm::BasicBlock*> Emitter::emit_without_end(const Operation& operation,
                                                                          llvm::ArrayRef<ir::Value*> indices,
                                                                          const std::function<void()>& plain,
                                                                          const std::function<void()>& any) {
    llvm::Value* none = builder_.getTrue();
    llvm::SmallVector<std::pair<const ir::Value*, const ir::Value*>, kMaxDims> written;
    for (const ir::Value* index : indices) {
        const ir::Value* before = linear_but_for_end(index);
        if (!before || !leaf(index).varying()) continue;
        written.push_back({index, before});
        llvm::Value* lowest = leaf(before).scalar;
        if (leaf(before).step < 0)
            lowest = builder_.CreateAdd(
                lowest, llvm::ConstantInt::getSigned(lowest->getType(), leaf(before).step * (lanes_.count - 1)));
        none =
            builder_.CreateAnd(none, builder_.CreateICmpSGE(lowest, llvm::Constant::getNullValue(lowest->getType())));
    }
    const auto from_start = [&] {
        for (const auto& [index, before] : written) value(index) = value(before);
        plain();
    };
    return emit_either(
        none, "from_start", [&] { apart(operation.operands, from_start); }, [&] { apart(operation.operands, any); });
}

}  // namespace weft::codegen
