// Addresses, loads and stores.
//
// An address is data + sum(index * stride). Uniform terms and the first lane's part of linear terms go into one scalar
// pointer, a constant distance between lanes stays a number, varying indices become a vector of offsets. Then
//   no distance                    one scalar access, shared by the lanes
//   distance = size of a number    one vector access; reversed for the negative distance
//   distance = packed element      wide accesses and shuffles (cpu/interleave.cpp, cpu/transpose.cpp)
//   any other distance             single accesses put together
//   vector of offsets              gather and scatter; offsets are kept in units of 1, 2, 4 or 8 bytes, which the
//                                  instructions scale by; single accesses if the processor has no fast gathers or
//                                  scatters (single_access.cpp)
// Under a mask, vector accesses of single numbers are masked ones, and wider elements go through a copy
// (cpu/copied_access.cpp). Scatters write lane after lane, so that the last lane wins.
#include <algorithm>
#include <utility>

#include "binary/cuda_abi.h"
#include "codegen/emitter.h"
#include "ir/indices.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Operation;

namespace {

std::int64_t constant_or(llvm::Value* value, std::int64_t otherwise) {
    auto* constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(value);
    return constant ? constant->getSExtValue() : otherwise;
}

// The largest scale of a gather that divides the stride.
std::int64_t unit_of(std::int64_t stride) {
    for (std::int64_t unit : {8, 4, 2})
        if (stride % unit == 0) return unit;
    return 1;
}

// Splits `x + constant` into x, which is null for a constant alone, and the constant.
std::pair<llvm::Value*, std::int64_t> split_constant(llvm::Value* number) {
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(number)) return {nullptr, constant->getSExtValue()};
    const auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(number);
    const bool is_sum = sum != nullptr && sum->getOpcode() == llvm::Instruction::Add;
    const bool is_difference = sum != nullptr && sum->getOpcode() == llvm::Instruction::Sub;
    if (!is_sum && !is_difference) return {number, 0};
    for (const unsigned at : {1U, 0U}) {
        const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(sum->getOperand(at));
        if (constant == nullptr || (at == 0 && is_difference)) continue;
        const auto [variable, others] = split_constant(sum->getOperand(1 - at));
        return {variable, is_sum ? others + constant->getSExtValue() : others - constant->getSExtValue()};
    }
    return {number, 0};
}

llvm::Align alignment_of(const LeafType& type) { return llvm::Align(static_cast<std::uint64_t>(size_of(type))); }

// The alignment of a number at this offset of an element with the given alignment.
llvm::Align alignment_in(std::int64_t element, const LeafType& type) {
    if (element == 0) return alignment_of(type);
    const llvm::Align of_element(static_cast<std::uint64_t>(element));
    return std::max(alignment_of(type), llvm::commonAlignment(of_element, static_cast<std::uint64_t>(type.offset)));
}

}  // namespace

template <typename Instruction>
Instruction* Emitter::with_alias(Instruction* instruction, MemoryRoot root) {
    if constexpr (std::is_same_v<Instruction, llvm::LoadInst>)
        // The launch before may still write while this one begins: the cache of read-only loads could be older.
        if (machine_.read_only_loads && !options_.programmatic && plan_.read_only.contains(root))
            instruction->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    alias_scopes_.mark(*instruction, root);
    return instruction;
}

llvm::Value* Emitter::byte_offset(llvm::Value* pointer, std::int64_t offset) {
    return offset == 0 ? pointer : builder_.CreateGEP(builder_.getInt8Ty(), pointer, i64(offset));
}

// The alignment that launches promise for elements of dense arrays (binary/cuda_abi.h); 0 for other arrays and for
// parts of elements.
std::int64_t Emitter::element_alignment(const ir::Value* array) const {
    if (!machine_.wide_elements || !options_.dense || !kernel_.is_kernel) return 0;
    const Type element = array->type.element();
    for (; array->definition; array = array->definition->operands[0])
        if (array->definition->op != ir::Op::view && array->definition->op != ir::Op::grad_of) return 0;
    return ir::is_parameter(kernel_, array) ? cuda_alignment(element.size_bytes()) : 0;
}

Emitter::Address Emitter::address_of(const ir::Value* array, llvm::ArrayRef<ir::Value*> indices, int data) {
    LaneValue& view = value(array);
    Address address;
    address.root = view.root;
    address.root.gradient |= data == kGradLeaf;
    address.alignment = element_alignment(array);
    std::size_t first_stride = static_cast<std::size_t>(stride_leaf(array->type));
    Leaf& start = view.leaves[static_cast<std::size_t>(data)];
    if (start.varying())
        address.bases = start.vector;
    else
        address.base = start.scalar;
    if (start.linear()) address.step = i64(start.step);

    // pointer + number * stride, both scalar
    auto advance = [&](llvm::Value* number, llvm::Value* stride) {
        std::int64_t bytes = constant_or(stride, 0);
        if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
            address.base =
                builder_.CreateGEP(builder_.getIntNTy(static_cast<unsigned>(8 * bytes)), address.base, number);
        else
            address.base = builder_.CreateGEP(builder_.getInt8Ty(), address.base, builder_.CreateMul(number, stride));
    };
    auto add_offsets = [&](llvm::Value* offsets, std::int64_t unit) {
        if (address.offsets) {
            auto in_bytes = [&](llvm::Value* v, std::int64_t scale) {
                return scale == 1 ? v : builder_.CreateMul(v, lanes_.splat(i64(scale)));
            };
            offsets = builder_.CreateAdd(in_bytes(address.offsets, address.unit), in_bytes(offsets, unit));
            unit = 1;
        }
        address.offsets = offsets;
        address.unit = unit;
    };

    if (machine_.shares_addresses && lanes_.count == 1) {
        // Constants in the indices last, and among them those of constant strides behind the products: accesses to
        // neighbouring elements then differ in the last step only.
        struct Distance {
            std::int64_t number;
            llvm::Value* stride;
        };
        llvm::SmallVector<Distance, kMaxDims> distances;
        for (std::size_t axis = 0; axis < indices.size(); ++axis) {
            llvm::Value* const stride = view.leaves[first_stride + axis].scalar;
            const auto [variable, constant] = split_constant(wide(leaf(indices[axis]), indices[axis]->type.scalar()));
            if (variable) advance(variable, stride);
            if (constant != 0) distances.push_back({constant, stride});
        }
        std::ranges::stable_partition(distances, [](const Distance& one) { return !constant_or(one.stride, 0); });
        for (const Distance& distance : distances) advance(i64(distance.number), distance.stride);
        return address;
    }

    // Terms that do not change along the last axis first: LLVM hoists their sum out of the loop over the lanes.
    for (auto kind : {0, 1, 2}) {
        for (std::size_t axis = 0; axis < indices.size(); ++axis) {
            Leaf &index = leaf(indices[axis]), &stride = view.leaves[first_stride + axis];
            Scalar scalar = indices[axis]->type.scalar();
            bool in_lanes = address.bases || index.varying() || stride.varying();
            int term = in_lanes ? 2 : index.step != 0 ? 1 : 0;
            if (term != kind) continue;
            if (term < 2) {
                advance(wide(index, scalar), stride.scalar);
                if (term == 0) continue;
                llvm::Value* step = builder_.CreateMul(stride.scalar, i64(index.step));
                address.step = address.step ? builder_.CreateAdd(address.step, step) : step;
                continue;
            }
            llvm::Value* numbers = vector(index);
            llvm::Type* wide_lanes = lanes_.of(builder_.getInt64Ty());
            numbers = info(scalar).is_signed() ? builder_.CreateSExt(numbers, wide_lanes)
                                               : builder_.CreateZExt(numbers, wide_lanes);
            std::int64_t bytes = stride.varying() ? 0 : constant_or(stride.scalar, 0);
            std::int64_t unit = bytes == 0 ? 1 : unit_of(bytes);
            if (bytes == 0)
                numbers = builder_.CreateMul(numbers, vector(stride));
            else if (bytes != unit)
                numbers = builder_.CreateMul(numbers, lanes_.splat(i64(bytes / unit)));
            add_offsets(numbers, unit);
        }
    }
    if (address.offsets && address.step) {
        add_offsets(builder_.CreateMul(lanes_.iota(builder_.getInt64Ty()), lanes_.splat(address.step)), 1);
        address.step = nullptr;
    }
    if (address.step && constant_or(address.step, 1) == 0) address.step = nullptr;
    return address;
}

llvm::Value* Emitter::pointers(const Address& address, std::int64_t offset) {
    llvm::Type* byte = builder_.getInt8Ty();
    if (address.bases) {
        llvm::Value* bases = address.bases;
        if (offset != 0) bases = builder_.CreateGEP(byte, bases, lanes_.splat(i64(offset)));
        return address.offsets ? builder_.CreateGEP(builder_.getIntNTy(static_cast<unsigned>(8 * address.unit)), bases,
                                                    address.offsets)
                               : bases;
    }
    llvm::Value* base = byte_offset(address.base, offset);
    if (address.offsets)
        return builder_.CreateGEP(builder_.getIntNTy(static_cast<unsigned>(8 * address.unit)), base, address.offsets);
    if (!address.step) return lanes_.splat(base);
    return builder_.CreateGEP(byte, base,
                              builder_.CreateMul(lanes_.iota(builder_.getInt64Ty()), lanes_.splat(address.step)));
}

llvm::Value* Emitter::pointer_of_lane(const Address& address, std::int64_t offset, llvm::Value* lane) {
    if (address.uniform()) return byte_offset(address.base, offset);
    if (!address.base || address.offsets) return builder_.CreateExtractElement(pointers(address, offset), lane);
    llvm::Value* distance = builder_.CreateMul(builder_.CreateZExtOrTrunc(lane, builder_.getInt64Ty()), address.step);
    return builder_.CreateGEP(builder_.getInt8Ty(), byte_offset(address.base, offset), distance);
}

llvm::Value* Emitter::from_memory(llvm::Value* loaded, const LeafType& type) {
    if (type.pointer || type.scalar != Scalar::boolean) return loaded;
    return builder_.CreateICmpNE(loaded, llvm::Constant::getNullValue(loaded->getType()));
}

llvm::Value* Emitter::to_memory(llvm::Value* value, const LeafType& type) {
    if (type.pointer || type.scalar != Scalar::boolean) return value;
    llvm::Type* byte = builder_.getInt8Ty();
    return builder_.CreateZExt(value, value->getType()->isVectorTy() ? lanes_.of(byte) : byte);
}

Leaf Emitter::load_leaf(Address& address, const LeafType& type) {
    llvm::Type *scalar = memory_type(type), *lanes = lanes_.of(scalar);
    llvm::Align alignment = alignment_of(type);
    auto done = [&](llvm::Value* loaded) { return Leaf::of_vector(from_memory(loaded, type)); };
    if (address.uniform()) {
        llvm::Value* pointer = byte_offset(address.base, type.offset);
        llvm::LoadInst* load = builder_.CreateAlignedLoad(scalar, pointer, alignment_in(address.alignment, type));
        return Leaf::of_scalar(from_memory(with_alias(load, address.root), type));
    }
    llvm::Value* nothing = llvm::Constant::getNullValue(lanes);
    if (address.step) {
        std::int64_t distance = constant_or(address.step, 0);
        bool forward = distance == size_of(type), backward = distance == -size_of(type);
        if ((forward || backward) && !type.pointer) {
            llvm::Value* pointer =
                byte_offset(address.base, type.offset + (backward ? distance * (lanes_.count - 1) : 0));
            llvm::Value* loaded;
            if (mask_) {
                llvm::Value* mask = backward ? builder_.CreateVectorReverse(lanes_.here(mask_)) : lanes_.here(mask_);
                loaded = with_alias(builder_.CreateMaskedLoad(lanes, pointer, alignment, mask, nothing), address.root);
                // LLVM 22's InstCombine merges a masked load and a select by the same mask into one masked load at the
                // select, past stores to that memory.
                loaded = lanes_.behind_fence(loaded);
            } else {
                loaded = with_alias(builder_.CreateAlignedLoad(lanes, pointer, alignment), address.root);
            }
            return done(backward ? builder_.CreateVectorReverse(loaded) : loaded);
        }
        if (!mask_) {
            llvm::Value* loaded = llvm::PoisonValue::get(lanes);
            for (int lane = 0; lane < lanes_.count; ++lane) {
                llvm::Value* pointer =
                    pointer_of_lane(address, type.offset, builder_.getInt32(static_cast<unsigned>(lane)));
                loaded = builder_.CreateInsertElement(
                    loaded, with_alias(builder_.CreateAlignedLoad(scalar, pointer, alignment), address.root),
                    static_cast<std::uint64_t>(lane));
            }
            return done(loaded);
        }
    }
    if (!machine_.fast_gathers) return done(load_singly(address, type));
    llvm::Value* mask = mask_ ? lanes_.here(mask_) : nullptr;
    return done(with_alias(builder_.CreateMaskedGather(lanes, pointers(address, type.offset), alignment, mask, nothing),
                           address.root));
}

void Emitter::store_leaf(Address& address, const LeafType& type, Leaf& value) {
    llvm::Align alignment = alignment_of(type);
    if (address.uniform()) {
        llvm::Value* last = to_memory(pick_last_active(value), type);
        with_alias(builder_.CreateAlignedStore(last, byte_offset(address.base, type.offset),
                                               alignment_in(address.alignment, type)),
                   address.root);
        return;
    }
    llvm::Value* stored = to_memory(vector(value), type);
    if (address.step) {
        std::int64_t distance = constant_or(address.step, 0);
        bool forward = distance == size_of(type), backward = distance == -size_of(type);
        if (forward || backward) {
            llvm::Value* pointer =
                byte_offset(address.base, type.offset + (backward ? distance * (lanes_.count - 1) : 0));
            if (backward) stored = builder_.CreateVectorReverse(stored);
            auto store_plainly = [&] {
                with_alias(builder_.CreateAlignedStore(stored, pointer, alignment), address.root);
            };
            auto store_masked = [&] {
                llvm::Value* mask = backward ? builder_.CreateVectorReverse(lanes_.here(mask_)) : lanes_.here(mask_);
                with_alias(builder_.CreateMaskedStore(stored, pointer, alignment, mask), address.root);
            };
            if (!mask_)
                store_plainly();
            else if (in_tail_)
                store_masked();
            else
                emit_either(is_full(mask_), "full", store_plainly, store_masked);
            return;
        }
        if (!mask_) {
            for (int lane = 0; lane < lanes_.count; ++lane) {
                llvm::Value* pointer =
                    pointer_of_lane(address, type.offset, builder_.getInt32(static_cast<unsigned>(lane)));
                llvm::Value* element = builder_.CreateExtractElement(stored, static_cast<std::uint64_t>(lane));
                with_alias(builder_.CreateAlignedStore(element, pointer, alignment), address.root);
            }
            return;
        }
    }
    if (!machine_.fast_scatters) return store_singly(address, type, stored);
    llvm::Value* mask = mask_ ? lanes_.here(mask_) : nullptr;
    with_alias(builder_.CreateMaskedScatter(stored, pointers(address, type.offset), alignment, mask), address.root);
}

LaneValue Emitter::load_from(Address& address, Type type) {
    LaneValue result{type, {}, {}};
    for (const LeafType& leaf : leaf_types(type)) result.leaves.push_back(load_leaf(address, leaf));
    return result;
}

void Emitter::store_to(Address& address, Type type, LaneValue& stored) {
    const std::vector<LeafType> leaves = leaf_types(type);
    for (std::size_t i = 0; i < leaves.size(); ++i) store_leaf(address, leaves[i], stored.leaves[i]);
}

void Emitter::emit_load(const Operation& operation) {
    llvm::ArrayRef<ir::Value*> indices = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front();
    Type type = operation.result()->type;
    auto load = [&] {
        Address address = address_of(operation.operands[0], indices);
        note_access(operation, address, AccessKind::read);
        return load_from(address, type);
    };
    if (!options_.debug) {
        if (emit_load_of_neighbours(operation)) return;
        if (counts_from_end_in_few(operation.operands[0], indices)) {
            LaneValue loaded[2];
            const auto [first, second] =
                emit_without_end(operation, indices, [&] { loaded[0] = load(); }, [&] { loaded[1] = load(); });
            return set(operation.result(), merge(type, true, loaded[0], first, loaded[1], second));
        }
        return set(operation.result(), load());
    }

    keep_part_address(operation);
    llvm::Value* ok = check_access(operation, indices);
    llvm::BasicBlock *inside = new_block("access"), *after = new_block("access.done");
    LaneValue nothing = zero_value(type, false);
    llvm::BasicBlock* checked = builder_.GetInsertBlock();
    builder_.CreateCondBr(ok, inside, after);
    builder_.SetInsertPoint(inside);
    LaneValue loaded = load();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    set(operation.result(), merge(type, false, loaded, inside, nothing, checked));
}

void Emitter::emit_store(const Operation& operation) {
    llvm::ArrayRef<ir::Value*> indices = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front().drop_back();
    const ir::Value* stored = operation.operands.back();
    auto store = [&] {
        Address address = address_of(operation.operands[0], indices);
        note_access(operation, address, AccessKind::write);
        store_to(address, stored->type, value(stored));
        note_access(operation, address, AccessKind::written);
    };
    if (!options_.debug) {
        if (!counts_from_end_in_few(operation.operands[0], indices)) return store();
        emit_without_end(operation, indices, store, store);
        return;
    }
    llvm::BasicBlock *inside = new_block("access"), *after = new_block("access.done");
    builder_.CreateCondBr(check_access(operation, indices), inside, after);
    builder_.SetInsertPoint(inside);
    store();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
}

template llvm::Instruction* Emitter::with_alias(llvm::Instruction*, MemoryRoot);
template llvm::AtomicCmpXchgInst* Emitter::with_alias(llvm::AtomicCmpXchgInst*, MemoryRoot);
template llvm::LoadInst* Emitter::with_alias(llvm::LoadInst*, MemoryRoot);
template llvm::StoreInst* Emitter::with_alias(llvm::StoreInst*, MemoryRoot);
template llvm::CallInst* Emitter::with_alias(llvm::CallInst*, MemoryRoot);
template llvm::AtomicRMWInst* Emitter::with_alias(llvm::AtomicRMWInst*, MemoryRoot);

}  // namespace weft::codegen
