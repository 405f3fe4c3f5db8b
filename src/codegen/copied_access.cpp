// Wide accesses to elements that most groups of lanes have side by side: plain ones, to memory or to a copy of it.
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
// A vec3 of eight lanes is a dozen instructions to load plainly, thirty under a mask and seventy as single numbers. To
// write two of the three forms behind a branch made up half of most kernels, and with it of the time to compile them;
// the call is one instruction. It keeps all registers (preserve_all), so that nothing is spilled around it.
//
// Each memory has its copy, so that what the alias scopes say of the memory holds for the copy too.
#include "codegen/emitter.h"
#include "ir/indices.h"

namespace weft::codegen {

namespace {

constexpr int kMostLanes = 64;                   // bits of the runtime's argument
constexpr std::int64_t kLargestDistance = 1024;  // bytes from lane to lane; the copy lies on the stack

}  // namespace

// The mask as numbers. They are computed where the mask is, once.
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

// Whether this access, under the present mask, goes through a copy. Masked accesses of single numbers are short.
bool Emitter::is_copied(const Address& address, llvm::ArrayRef<LeafType> leaves) const {
    if (leaves.empty() || !mask_ || !address.base || address.offsets || lanes_ > kMostLanes) return false;
    auto* step = llvm::dyn_cast_or_null<llvm::ConstantInt>(address.step);
    if (!step || step->getSExtValue() <= 0 || step->getSExtValue() > kLargestDistance) return false;
    return leaves.size() > 1 || step->getSExtValue() != size_of(leaves[0]);
}

llvm::AllocaInst* Emitter::copy_of(const Address& address) {
    std::int64_t bytes = lanes_ * llvm::cast<llvm::ConstantInt>(address.step)->getSExtValue();
    auto* type = llvm::ArrayType::get(builder_.getInt8Ty(), static_cast<std::uint64_t>(bytes));
    llvm::AllocaInst*& copy = copies_[address.root.parameter < 0 ? -1 : scope_key(address.root)];
    if (!copy) {
        llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
        copy = entry.CreateAlloca(type, nullptr, "copy");
        copy->setAlignment(llvm::Align(16));
    } else if (copy->getAllocatedType()->getArrayNumElements() < type->getNumElements()) {
        copy->setAllocatedType(type);
    }
    return copy;
}

// A function of the runtime: the first argument is written through, the other pointers are read.
llvm::CallInst* Emitter::call_copier(const char* symbol, const Address& address, Values arguments) {
    llvm::SmallVector<llvm::Type*, 6> types;
    for (llvm::Value* argument : arguments) types.push_back(argument->getType());
    llvm::FunctionCallee callee =
        module_.getOrInsertFunction(symbol, llvm::FunctionType::get(builder_.getVoidTy(), types, false));
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    if (function->use_empty()) {
        function->setDoesNotThrow();
        function->setWillReturn();
        function->setOnlyAccessesArgMemory();
        if (machine_.keeps_registers) function->setCallingConv(llvm::CallingConv::PreserveAll);
        for (unsigned i = 0; i < types.size(); ++i) {
            if (!types[i]->isPointerTy()) continue;
            function->addParamAttr(i, i == 0 ? llvm::Attribute::WriteOnly : llvm::Attribute::ReadOnly);
            function->addParamAttr(i, llvm::Attribute::getWithCaptureInfo(context_, llvm::CaptureInfo::none()));
        }
    }
    llvm::CallInst* call = builder_.CreateCall(callee, arguments);
    call->setCallingConv(function->getCallingConv());
    return with_alias(call, address.root);
}

void Emitter::copy_lanes(const Address& address, llvm::Value* to, llvm::Value* from, std::int64_t bytes) {
    llvm::Value* lanes = builder_.CreateZExt(mask_numbers(mask_).bits, builder_.getInt64Ty());
    call_copier("weft_copy_lanes", address, {to, from, i64(bytes), address.step, lanes});
}

// Lanes that are off load zeros: functions of vectors may take another way to their results, with other bits, where any
// number is large.
void Emitter::clear_copy(const Address& address) {
    llvm::AllocaInst* copy = copy_of(address);
    llvm::Value* bytes = i64(static_cast<std::int64_t>(copy->getAllocatedType()->getArrayNumElements()));
    llvm::CallInst* call = builder_.CreateMemSetInline(copy, copy->getAlign(), builder_.getInt8(0), bytes);
    with_alias(call, address.root);
}

// Emits `body` for the groups that are not full.
void Emitter::emit_unless_full(const std::function<void()>& body) {
    if (in_tail_) return body();
    llvm::BasicBlock *partial = new_block("partial"), *after = new_block("full");
    builder_.CreateCondBr(is_full(mask_), after, partial, mostly_);
    builder_.SetInsertPoint(partial);
    body();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
}

void Emitter::load_copied(Address& address, std::int64_t bytes, const std::function<void()>& load) {
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

void Emitter::store_copied(Address& address, std::int64_t bytes, const std::function<void()>& store) {
    llvm::Value *base = address.base, *copy = copy_of(address), *mask = mask_;
    address.base = builder_.CreateSelect(is_full(mask), base, copy);
    mask_ = nullptr;
    store();
    mask_ = mask;
    address.base = base;
    emit_unless_full([&] { copy_lanes(address, base, copy, bytes); });
}

// Whether the lanes are neighbours along the last axis in most groups, and everything before it is uniform.
bool Emitter::is_run(const ir::Value* array, llvm::ArrayRef<ir::Value*> indices) {
    if (lanes_ == 1 || lanes_ > kMostLanes || indices.empty() || !shape(indices.back()).runs ||
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

std::pair<llvm::Value*, llvm::Value*> Emitter::run_test(const ir::Value* index) {
    // Neighbours of which none counts from the end, where the first one does not.
    if (const ir::Value* written = ir::as_written(index);
        written && leaf(written).linear() && leaf(written).step == 1) {
        llvm::Value* lane = leaf(written).scalar;
        llvm::Value* plain = builder_.CreateICmpSGE(lane, llvm::Constant::getNullValue(lane->getType()));
        return {mask_ ? builder_.CreateAnd(plain, is_full(mask_)) : plain, lane};
    }
    llvm::Value* numbers = vector(value(index).leaves[0]);
    llvm::Value* first = builder_.CreateExtractElement(numbers, std::uint64_t{0});
    llvm::Value* expected = builder_.CreateAdd(splat(first), iota(first->getType()));
    llvm::Value* plain = builder_.CreateAndReduce(builder_.CreateICmpEQ(numbers, expected));
    return {mask_ ? builder_.CreateAnd(plain, is_full(mask_)) : plain, first};
}

LaneValue Emitter::load_run(const ir::Operation& operation, const std::function<LaneValue(Address&)>& load) {
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
        index_slots_ = entry.CreateAlloca(lanes_of(builder_.getInt64Ty()), nullptr, "indices");
        index_slots_->setAlignment(llvm::Align(16));
    }
    llvm::Type* wide_lanes = lanes_of(builder_.getInt64Ty());
    llvm::Value* wide_numbers = info(index->type.scalar()).is_signed() ? builder_.CreateSExt(numbers, wide_lanes)
                                                                       : builder_.CreateZExt(numbers, wide_lanes);
    builder_.CreateAlignedStore(wide_numbers, index_slots_, llvm::Align(16));
    llvm::Value* lanes = mask ? builder_.CreateZExt(mask_numbers(mask).bits, builder_.getInt64Ty())
                              : i64(static_cast<std::int64_t>(~std::uint64_t{0} >> (kMostLanes - lanes_)));
    call_copier("weft_gather_lanes", address,
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
