// Contributions of many threads that arrive as one. If a kernel only combines into an array
// (transform/analysis/privatised.h), an atomic per thread is more than necessary.
//
// An address that no thread changes:
//
//     before: for threads in chunk: atomic.add total[0], x           (one atomic per group of lanes)
//     after:  sum = identity, in W lanes; for threads in chunk: sum += x; atomic.add total[0], sum of the lanes
//
// Varying addresses, in an array that is small at the launch, compared with the number of threads:
//
//     before: for threads in chunk: atomic.add bins[i], x
//     after:  copy = identity everywhere; for threads in chunk: copy[i] += x; for all i: atomic.add bins[i], copy[i]
//
// Elements that still hold the identity at the end are not written: untouched memory may not exist. Chunks run on any
// number of threads, and launches run beside others: memory that they share is updated by atomics only. But if the
// launch is one chunk, and no other launch with atomics runs meanwhile (LaunchContext::exclusive), it adds plainly.
#include "codegen/cpu/emitter.h"
#include "ir/walk.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

namespace {

// A copy is on the stack, and should stay in the first-level cache.
constexpr std::int64_t kPrivateBytes = 32768;
constexpr std::size_t kMostPrivateCopies = 2;
// The assumed trip count of loops with bounds unknown at the launch, and the cap on any trip count.
constexpr std::int64_t kGuessedTrips = 4, kMostTrips = std::int64_t{1} << 16;
constexpr std::int64_t kFillBytes = 32;
// Bytes that one atomic adds from a copy to the array.
constexpr std::int64_t kBlockBytes = 16;

std::size_t data_leaf(MemoryRoot root) { return root.gradient ? kGradLeaf : kDataLeaf; }

}  // namespace

void CpuEmitter::open_accumulators() {
    if (plan_.accumulated.empty()) return;
    ir::for_each_operation(kernel_.body, [&](const Operation& operation) {
        if (!plan_.accumulated.contains(&operation)) return;
        const std::vector<LeafType> leaves = leaf_types(operation.operands.back()->type);
        llvm::ArrayRef<ir::Value*> indices = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front().drop_back();
        emit_invariant(operation.operands[0]);
        for (const ir::Value* index : indices) emit_invariant(index);
        Address address = address_of(operation.operands[0], indices);
        const Op kind = plan_.privatised.at(memory_of(operation));
        for (const LeafType& leaf : leaves) {
            llvm::Constant* nothing = neutral(kind, leaf.scalar);
            if (lanes_.count > 1) nothing = llvm::cast<llvm::Constant>(lanes_.splat(nothing));
            llvm::Value* sum = builder_.CreateAlloca(nothing->getType());
            builder_.CreateStore(nothing, sum);
            accumulators_[&operation].push_back({kind, leaf.scalar, sum, byte_offset(address.base, leaf.offset)});
        }
    });
}

// Adds the operands to an accumulator, if the operation has one; else returns false.
bool CpuEmitter::accumulate(const Operation& operation) {
    auto found = accumulators_.find(&operation);
    if (found == accumulators_.end()) return false;
    // Fast math could drop the signed zero or NaN that is the identity.
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    builder_.clearFastMathFlags();
    LaneValue& operand = value(operation.operands.back());
    for (std::size_t i = 0; i < found->second.size(); ++i) {
        const Accumulator& accumulator = found->second[i];
        llvm::Value* fresh = contributions(accumulator.kind, accumulator.scalar, operand.leaves[i]);
        llvm::Value* sum = builder_.CreateLoad(fresh->getType(), accumulator.sum);
        builder_.CreateStore(binary(*ir::applied(operation.op), accumulator.scalar, sum, fresh), accumulator.sum);
    }
    return true;
}

void CpuEmitter::close_accumulators() {
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    builder_.clearFastMathFlags();
    ir::for_each_operation(kernel_.body, [&](const Operation& operation) {
        auto found = accumulators_.find(&operation);
        if (found == accumulators_.end()) return;
        for (const Accumulator& accumulator : found->second) {
            llvm::Type* type = register_type(accumulator.scalar);
            llvm::Value* lanes = builder_.CreateLoad(lanes_.count > 1 ? lanes_.of(type) : type, accumulator.sum);
            contribute(accumulator.kind, accumulator.scalar, accumulator.pointer,
                       combine_lanes(accumulator.kind, accumulator.scalar, lanes));
        }
    });
}

// Combines contributions first: in a register, in a private copy or with those of neighbours.
bool CpuEmitter::emit_put_together(const Operation& atomic) {
    if (accumulate(atomic)) return true;
    if (!is_shared_at_boundaries(atomic)) return false;
    const auto found = plan_.adjacent_additions_of.find(&atomic);
    if (found == plan_.adjacent_additions_of.end() || !can_add_together(*found->second))
        add_within_chunk(atomic);
    else if (&atomic == found->second->members.back().add)
        emit_adjacent_additions(*found->second);
    return true;
}

// ---- private copies ----

std::vector<CpuEmitter::PrivateCopy> CpuEmitter::private_candidates() {
    std::vector<PrivateCopy> result;
    if (plan_.size.leaves > transform::kSmallCombiningBody) return result;
    std::set<MemoryRoot> wanted;
    ir::for_each_operation(kernel_.body, [&](const Operation& operation) {
        if (!ir::is_atomic(operation.op) || plan_.accumulated.contains(&operation)) return;
        const MemoryRoot memory = memory_of(operation);
        if (!plan_.uncontended.contains(memory)) wanted.insert(memory);
    });
    for (const MemoryRoot root : wanted) {
        const auto privatised = plan_.privatised.find(root);
        if (privatised == plan_.privatised.end() || result.size() == kMostPrivateCopies) continue;
        const ir::Value* array = kernel_.parameters()[static_cast<std::size_t>(root.parameter)];
        Type element = array->type.element();
        if (!element.is_scalar() && !element.is_numeric_aggregate()) continue;
        PrivateCopy copy{root, privatised->second, element.scalar(), nullptr, nullptr, value(array)};
        result.push_back(std::move(copy));
    }
    return result;
}

// How often one thread reaches this operation, i64; from loop bounds that the launch knows.
llvm::Value* CpuEmitter::visits(const Operation& operation) {
    llvm::Value* product = i64(1);
    for (const ir::Region* region = operation.parent; region->owner; region = region->owner->parent) {
        const Operation& loop = *region->owner;
        if (loop.op == Op::if_) continue;
        llvm::Value* trips = i64(kGuessedTrips);
        if (plan_.loops_of_launch.contains(&loop)) {
            const Scalar scalar = loop.operands[0]->type.scalar();
            for (const ir::Value* bound : {loop.operands[0], loop.operands[1]}) emit_invariant(bound);
            llvm::Value* distance =
                builder_.CreateSub(wide(leaf(loop.operands[1]), scalar), wide(leaf(loop.operands[0]), scalar));
            trips = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, distance, builder_.getFalse());
        }
        product = builder_.CreateMul(product, trips);
        product = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, product, i64(kMostTrips));
    }
    return product;
}

// Whether, at this launch, the array is not None, packed, and small compared with the chunk's contributions.
llvm::Value* CpuEmitter::fits(PrivateCopy& copy, llvm::Value* threads) {
    Type array = copy.shared.type;
    auto ndim = static_cast<std::size_t>(array.ndim());
    std::int64_t size = array.element().size_bytes(), number_size = info(copy.scalar).bytes();
    llvm::Value* data = copy.shared.leaves[data_leaf(copy.root)].scalar;
    llvm::Value* result = builder_.CreateICmpNE(data, llvm::Constant::getNullValue(data->getType()));
    auto require = [&](llvm::Value* condition) { result = builder_.CreateAnd(result, condition); };
    // Extents that fit one by one have a product that does not overflow.
    llvm::Value *elements = i64(1), *stride = i64(size);
    for (std::size_t axis = ndim; axis-- > 0;) {
        llvm::Value* extent = copy.shared.leaves[kShapeLeaf + axis].scalar;
        require(builder_.CreateICmpEQ(copy.shared.leaves[kShapeLeaf + ndim + axis].scalar, stride));
        require(builder_.CreateICmpULE(extent, i64(kPrivateBytes / size)));
        elements = builder_.CreateMul(elements, extent);
        stride = builder_.CreateMul(stride, extent);
    }
    require(builder_.CreateICmpULE(elements, i64(kPrivateBytes / size)));
    // An array without elements has nothing to fill; any index into it is out of range, with a copy or without.
    require(builder_.CreateICmpNE(elements, i64(0)));
    copy.numbers = builder_.CreateMul(elements, i64(size / number_size));
    // Filling and adding one number of the copy takes less than the atomic that it saves.
    llvm::Value* most = i64(0);
    ir::for_each_operation(kernel_.body, [&](const Operation& operation) {
        if (!ir::is_atomic(operation.op) || memory_of(operation) != copy.root) return;
        const auto numbers = static_cast<std::int64_t>(leaf_types(operation.operands.back()->type).size());
        most = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, most,
                                              builder_.CreateMul(visits(operation), i64(numbers)));
    });
    require(builder_.CreateICmpUGE(builder_.CreateMul(threads, most), copy.numbers));
    return result;
}

// A loop over 0 .. count - 1. Precondition: `count` is not 0.
void CpuEmitter::emit_counted(llvm::Value* count, const std::function<void(llvm::Value* i)>& body) {
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("each"), *after = new_block("each.done");
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    llvm::PHINode* i = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    i->addIncoming(i64(0), before);
    body(i);
    llvm::Value* next = builder_.CreateAdd(i, i64(1), "", true, true);
    i->addIncoming(next, builder_.GetInsertBlock());
    keep_rolled(builder_.CreateCondBr(builder_.CreateICmpNE(next, count), loop, after));
    builder_.SetInsertPoint(after);
}

// Fills the copy with the identity and substitutes it for the parameter.
void CpuEmitter::open_private_copy(const PrivateCopy& copy) {
    llvm::Constant* nothing = neutral(copy.kind, copy.scalar);
    std::int64_t at_once = kFillBytes / info(copy.scalar).bytes();
    llvm::Constant* filling =
        llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(at_once)), nothing);
    llvm::Value* rounds = builder_.CreateUDiv(builder_.CreateAdd(copy.numbers, i64(at_once - 1)), i64(at_once));
    emit_counted(rounds, [&](llvm::Value* i) {
        llvm::Value* place = builder_.CreateGEP(filling->getType(), copy.memory, i);
        builder_.CreateAlignedStore(filling, place, llvm::Align(kFillBytes));
    });
    LaneValue own = copy.shared;
    own.leaves[data_leaf(copy.root)] = Leaf::of_scalar(copy.memory);
    set(kernel_.parameters()[static_cast<std::size_t>(copy.root.parameter)], std::move(own));
    private_memories_.insert(copy.root);
}

void CpuEmitter::close_private_copy(const PrivateCopy& copy) {
    private_memories_.erase(copy.root);
    set(kernel_.parameters()[static_cast<std::size_t>(copy.root.parameter)], copy.shared);
    llvm::Type* type = register_type(copy.scalar);
    llvm::Value* const home = copy.shared.leaves[data_leaf(copy.root)].scalar;
    const std::int64_t size = info(copy.scalar).bytes(), at_once = cpu_.wide_atomics ? kBlockBytes / size : 1;
    const auto bring = [&](llvm::Value* i) {
        llvm::Value* total = builder_.CreateLoad(type, builder_.CreateGEP(type, copy.memory, i));
        contribute(copy.kind, copy.scalar, builder_.CreateGEP(type, home, i), total);
    };
    if (at_once == 1) return emit_counted(copy.numbers, bring);
    // Whole blocks begin at addresses that are multiples of their size; single numbers come before and after them.
    llvm::Value* address = builder_.CreatePtrToInt(home, builder_.getInt64Ty());
    llvm::Value* before =
        builder_.CreateUDiv(builder_.CreateAnd(builder_.CreateNeg(address), i64(kBlockBytes - 1)), i64(size));
    before = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, before, copy.numbers);
    llvm::Value* blocks = builder_.CreateUDiv(builder_.CreateSub(copy.numbers, before), i64(at_once));
    llvm::Value* in_blocks = builder_.CreateMul(blocks, i64(at_once));
    const auto emit_some = [&](llvm::Value* count, const std::function<void(llvm::Value*)>& body) {
        emit_either(builder_.CreateICmpNE(count, i64(0)), "some", [&] { emit_counted(count, body); }, [] {});
    };
    emit_some(blocks, [&](llvm::Value* block) {
        llvm::Value* i = builder_.CreateAdd(before, builder_.CreateMul(block, i64(at_once)));
        auto* many = llvm::FixedVectorType::get(type, static_cast<unsigned>(at_once));
        llvm::Value* totals = builder_.CreateAlignedLoad(many, builder_.CreateGEP(type, copy.memory, i),
                                                         llvm::Align(static_cast<std::uint64_t>(size)));
        contribute_block(copy.kind, copy.scalar, builder_.CreateGEP(type, home, i), totals);
    });
    emit_some(builder_.CreateSub(copy.numbers, in_blocks), [&](llvm::Value* i) {
        bring(builder_.CreateSelect(builder_.CreateICmpULT(i, before), i, builder_.CreateAdd(i, in_blocks)));
    });
}

// The same for one block of adjacent numbers.
void CpuEmitter::contribute_block(Op kind, Scalar scalar, llvm::Value* pointer, llvm::Value* totals) {
    const auto count = llvm::cast<llvm::FixedVectorType>(totals->getType())->getElementCount();
    llvm::Type* bits = builder_.getIntNTy(8 * kBlockBytes);
    const llvm::Align alignment(kBlockBytes);
    llvm::Value* nothing = builder_.CreateBitCast(llvm::ConstantVector::getSplat(count, neutral(kind, scalar)), bits);
    llvm::BasicBlock *write = new_block("contribute"), *loop = new_block("cas"), *after = new_block("contributed");
    builder_.CreateCondBr(builder_.CreateICmpNE(builder_.CreateBitCast(totals, bits), nothing), write, after);
    builder_.SetInsertPoint(write);
    llvm::Value* seen = builder_.CreateBitCast(builder_.CreateAlignedLoad(totals->getType(), pointer, alignment), bits);
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    llvm::PHINode* old = builder_.CreatePHI(bits, 2);
    old->addIncoming(seen, write);
    llvm::Value* fresh = binary(*ir::applied(kind), scalar, builder_.CreateBitCast(old, totals->getType()), totals);
    constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;
    llvm::Value* pair =
        builder_.CreateAtomicCmpXchg(pointer, old, builder_.CreateBitCast(fresh, bits), alignment, kRelaxed, kRelaxed);
    old->addIncoming(builder_.CreateExtractValue(pair, 0), builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateExtractValue(pair, 1), after, loop);
    builder_.SetInsertPoint(after);
}

// ---- exclusive launches ----

// Runs the threads begin .. end, at least one.
void CpuEmitter::emit_chunk(llvm::Value* begin, llvm::Value* end) {
    if (plan_.plain_when_alone.empty()) return emit_shared_chunk(begin, end);
    llvm::Value* address =
        builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), launch_, offsetof(LaunchContext, exclusive));
    llvm::Value* exclusive = builder_.CreateAlignedLoad(builder_.getInt8Ty(), address, llvm::Align(1));
    emit_either(
        builder_.CreateICmpNE(exclusive, builder_.getInt8(0)), "exclusive",
        [&] {
            for (const Operation* operation : plan_.plain_when_alone) private_memories_.insert(memory_of(*operation));
            emit_threads(begin, end);
            private_memories_.clear();
            close_accumulators();
        },
        [&] { emit_shared_chunk(begin, end); });
}

// The same if other chunks, and other launches, may run at the same time.
void CpuEmitter::emit_shared_chunk(llvm::Value* begin, llvm::Value* end) {
    std::vector<PrivateCopy> copies = private_candidates();
    if (copies.empty()) {
        emit_threads(begin, end);
        return close_accumulators();
    }
    llvm::Value *threads = builder_.CreateSub(end, begin), *all_fit = builder_.getTrue();
    llvm::Type* byte = builder_.getInt8Ty();
    for (PrivateCopy& copy : copies) {
        Builder::InsertPointGuard guard(builder_);
        builder_.SetInsertPoint(&function_->getEntryBlock(), function_->getEntryBlock().begin());
        llvm::AllocaInst* memory = builder_.CreateAlloca(llvm::ArrayType::get(byte, kPrivateBytes));
        memory->setAlignment(llvm::Align(64));
        copy.memory = memory;
    }
    for (PrivateCopy& copy : copies) all_fit = builder_.CreateAnd(all_fit, fits(copy, threads));
    emit_either(
        all_fit, "private",
        [&] {
            for (const PrivateCopy& copy : copies) open_private_copy(copy);
            emit_threads(begin, end);
            for (const PrivateCopy& copy : copies) close_private_copy(copy);
        },
        [&] { emit_threads(begin, end); });
    close_accumulators();
}

}  // namespace weft::codegen
