// Wide accesses to elements that are adjacent in most groups of lanes: plain ones, to memory or to a copy of it.
//
// load   before   masked load at base, base + step, ...
//        after    place = base
//                 if some lanes are off: copy = zeros; weft_copy_lanes(copy, base, active lanes); place = copy
//                 plain load at place
// store  before   masked store
//        after    place = all lanes are on ? base : copy
//                 plain store at place
//                 if some lanes are off: weft_copy_lanes(base, copy, active lanes)
// run    before   gather at base + index * distance
//        after    place = base + index[0] * distance
//                 if index != index[0] + (0, 1, 2, ...): weft_gather_lanes(copy, base, index); place = copy
//                 plain load at place
//
// A vec3 of eight lanes takes a dozen instructions to load plainly, thirty under a mask and seventy as single numbers.
// With two of the three forms behind a branch, these were half of the code of most kernels, and of the time to compile
// them. The call is one instruction. It keeps all registers (preserve_all), so that nothing is spilled around it.
//
// Each memory has its copy, so that its alias scopes also hold for the copy.
#include "codegen/cpu/emitter.h"
#include "ir/indices.h"

namespace weft::codegen {

namespace {

constexpr int kMostLanes = 64;                   // bits of the runtime's argument
constexpr std::int64_t kLargestDistance = 1024;  // bytes from lane to lane; the copy lies on the stack

}  // namespace

// Whether this access, under the present mask, goes through a copy. Masked accesses of single numbers are short.
bool CpuEmitter::is_copied(const Address& address, llvm::ArrayRef<LeafType> leaves) const {
    if (leaves.empty() || !mask_ || !address.base || address.offsets || lanes_.count > kMostLanes) return false;
    auto* step = llvm::dyn_cast_or_null<llvm::ConstantInt>(address.step);
    if (!step || step->getSExtValue() <= 0 || step->getSExtValue() > kLargestDistance) return false;
    return leaves.size() > 1 || step->getSExtValue() != size_of(leaves[0]);
}

llvm::AllocaInst* CpuEmitter::copy_of(const Address& address) {
    std::int64_t bytes = lanes_.count * llvm::cast<llvm::ConstantInt>(address.step)->getSExtValue();
    auto* type = llvm::ArrayType::get(builder_.getInt8Ty(), static_cast<std::uint64_t>(bytes));
    llvm::AllocaInst*& copy = copies_[address.root.parameter < 0 ? -1 : AliasScopes::key(address.root)];
    if (!copy) {
        llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
        copy = entry.CreateAlloca(type, nullptr, "copy");
        copy->setAlignment(llvm::Align(16));
    } else if (copy->getAllocatedType()->getArrayNumElements() < type->getNumElements()) {
        copy->setAllocatedType(type);
    }
    return copy;
}

llvm::CallInst* CpuEmitter::call_copier(Import import, const Address& address, Values arguments) {
    return with_alias(call_runtime(import, arguments), address.root);
}

void CpuEmitter::copy_lanes(const Address& address, llvm::Value* to, llvm::Value* from, std::int64_t bytes) {
    llvm::Value* lanes = builder_.CreateZExt(lanes_.numbers(mask_).bits, builder_.getInt64Ty());
    call_copier(Import::weft_copy_lanes, address, {to, from, i64(bytes), address.step, lanes});
}

// Inactive lanes load zeros: if any lane is large, vector functions may take another path, with other bits.
void CpuEmitter::clear_copy(const Address& address) {
    llvm::AllocaInst* copy = copy_of(address);
    llvm::Value* bytes = i64(static_cast<std::int64_t>(copy->getAllocatedType()->getArrayNumElements()));
    llvm::CallInst* call = builder_.CreateMemSetInline(copy, copy->getAlign(), builder_.getInt8(0), bytes);
    with_alias(call, address.root);
}

// Emits `body` for the groups with inactive lanes.
void CpuEmitter::emit_unless_full(const std::function<void()>& body) {
    if (in_tail_) return body();
    llvm::BasicBlock *partial = new_block("partial"), *after = new_block("full");
    builder_.CreateCondBr(is_full(mask_), after, partial, mostly_);
    builder_.SetInsertPoint(partial);
    body();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
}

void CpuEmitter::load_copied(Address& address, std::int64_t bytes, const std::function<void()>& load) {
    llvm::Value *base = address.base, *copy = copy_of(address), *mask = mask_;
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    llvm::BasicBlock* partial = before;
    emit_unless_full([&] {
        clear_copy(address);
        copy_lanes(address, copy, base, bytes);
        partial = builder_.GetInsertBlock();
    });
    address.base = copy;
    if (partial != before) {
        llvm::PHINode* place = builder_.CreatePHI(base->getType(), 2);
        place->addIncoming(base, before);
        place->addIncoming(copy, partial);
        address.base = place;
    }
    mask_ = nullptr;
    load();
    mask_ = mask;
    address.base = base;
}

void CpuEmitter::store_copied(Address& address, std::int64_t bytes, const std::function<void()>& store) {
    llvm::Value *base = address.base, *copy = copy_of(address), *mask = mask_;
    address.base = builder_.CreateSelect(is_full(mask), base, copy);
    mask_ = nullptr;
    store();
    mask_ = mask;
    address.base = base;
    emit_unless_full([&] { copy_lanes(address, base, copy, bytes); });
}

LaneValue CpuEmitter::load_from(Address& address, Type type) {
    std::vector<LeafType> leaves = leaf_types(type);
    LaneValue result{type, {}, {}};
    auto load_leaves = [&] {
        if (interleaves(address, leaves, type.size_bytes()))
            load_interleaved(address, leaves, result);
        else if (transposes(address, leaves, type.size_bytes()))
            load_transposed(address, leaves, result);
        else if (is_in_rows(address, leaves))
            load_rows(address, leaves, result);
        else
            for (const LeafType& leaf : leaves) result.leaves.push_back(load_leaf(address, leaf));
    };
    if (is_copied(address, leaves))
        load_copied(address, type.size_bytes(), load_leaves);
    else
        load_leaves();
    return result;
}

void CpuEmitter::store_to(Address& address, Type type, LaneValue& stored) {
    std::vector<LeafType> leaves = leaf_types(type);
    auto store_leaves = [&] {
        if (interleaves(address, leaves, type.size_bytes())) return store_interleaved(address, leaves, stored);
        if (transposes(address, leaves, type.size_bytes())) return store_transposed(address, leaves, stored);
        for (std::size_t i = 0; i < leaves.size(); ++i) store_leaf(address, leaves[i], stored.leaves[i]);
    };
    if (is_copied(address, leaves))
        store_copied(address, type.size_bytes(), store_leaves);
    else
        store_leaves();
}

// Whether the lanes are neighbours along the last axis in most groups, and all other indices are uniform.
bool CpuEmitter::is_run(const ir::Value* array, llvm::ArrayRef<ir::Value*> indices) {
    if (lanes_.count == 1 || lanes_.count > kMostLanes || indices.empty() || !shape(indices.back()).mostly_contiguous ||
        !leaf(indices.back()).varying())
        return false;
    LaneValue& view = value(array);
    Leaf& stride = view.leaves[static_cast<std::size_t>(stride_leaf(array->type)) + indices.size() - 1];
    if (!view.leaves[kDataLeaf].uniform() || stride.varying()) return false;
    auto* distance = llvm::dyn_cast<llvm::ConstantInt>(stride.scalar);
    if (!distance || distance->getSExtValue() <= 0 || distance->getSExtValue() > kLargestDistance) return false;
    for (const ir::Value* index : indices.drop_back())
        if (!leaf(index).uniform()) return false;
    return true;
}

std::pair<llvm::Value*, llvm::Value*> CpuEmitter::run_test(const ir::Value* index) {
    // Neighbours as written: if the first index is not negative, none is.
    if (const ir::Value* written = ir::as_written(index);
        written && leaf(written).linear() && leaf(written).step == 1) {
        llvm::Value* lane = leaf(written).scalar;
        llvm::Value* plain = builder_.CreateICmpSGE(lane, llvm::Constant::getNullValue(lane->getType()));
        return {mask_ ? builder_.CreateAnd(plain, is_full(mask_)) : plain, lane};
    }
    llvm::Value* numbers = vector(value(index).leaves[0]);
    llvm::Value* first = builder_.CreateExtractElement(numbers, std::uint64_t{0});
    llvm::Value* expected = builder_.CreateAdd(lanes_.splat(first), lanes_.iota(first->getType()));
    llvm::Value* plain = builder_.CreateAndReduce(builder_.CreateICmpEQ(numbers, expected));
    return {mask_ ? builder_.CreateAnd(plain, is_full(mask_)) : plain, first};
}

bool CpuEmitter::emit_load_of_neighbours(const ir::Operation& operation) {
    const llvm::ArrayRef<ir::Value*> indices = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front();
    if (!is_run(operation.operands[0], indices)) return false;
    const Type type = operation.result()->type;
    set(operation.result(), load_run(operation, [&](Address& address) { return load_from(address, type); }));
    return true;
}

LaneValue CpuEmitter::load_run(const ir::Operation& operation, const std::function<LaneValue(Address&)>& load) {
    const ir::Value* array = operation.operands[0];
    llvm::ArrayRef<ir::Value*> indices = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front();
    const ir::Value* index = indices.back();
    llvm::Value *numbers = vector(value(index).leaves[0]), *mask = mask_;
    auto [plain, first] = run_test(index);

    LaneValue saved = value(index);
    value(index).leaves[0] = Leaf::of_linear(first, 1);
    Address address = address_of(array, indices);
    value(index) = std::move(saved);
    llvm::AllocaInst* copy = copy_of(address);

    llvm::BasicBlock *before = builder_.GetInsertBlock(), *gather = new_block("gather"), *after = new_block("run");
    builder_.CreateCondBr(plain, after, gather, mostly_);
    builder_.SetInsertPoint(gather);
    if (mask) clear_copy(address);
    Address start = address_of(array, indices.drop_back());
    if (!index_slots_) {
        llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
        index_slots_ = entry.CreateAlloca(lanes_.of(builder_.getInt64Ty()), nullptr, "indices");
        index_slots_->setAlignment(llvm::Align(16));
    }
    llvm::Type* wide_lanes = lanes_.of(builder_.getInt64Ty());
    llvm::Value* wide_numbers = info(index->type.scalar()).is_signed() ? builder_.CreateSExt(numbers, wide_lanes)
                                                                       : builder_.CreateZExt(numbers, wide_lanes);
    builder_.CreateAlignedStore(wide_numbers, index_slots_, llvm::Align(16));
    llvm::Value* lanes = mask ? builder_.CreateZExt(lanes_.numbers(mask).bits, builder_.getInt64Ty())
                              : i64(static_cast<std::int64_t>(~std::uint64_t{0} >> (kMostLanes - lanes_.count)));
    call_copier(Import::weft_gather_lanes, address,
                {copy, start.base, index_slots_, i64(operation.result()->type.size_bytes()), address.step, lanes});
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    llvm::PHINode* place = builder_.CreatePHI(copy->getType(), 2);
    place->addIncoming(address.base, before);
    place->addIncoming(copy, gather);
    address.base = place;
    mask_ = nullptr;
    LaneValue result = load(address);
    mask_ = mask;
    return result;
}

}  // namespace weft::codegen
