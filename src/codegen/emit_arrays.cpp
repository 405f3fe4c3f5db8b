// Arrays that a kernel makes: slices of others, local ones on the stack, memory at an address.
//
// The local arrays of the W lanes of a group are interleaved, element by element:
//
//     element 0 of lane 0, of lane 1, ... of lane W-1; element 1 of lane 0, ...
//
// so that an index that is equal in all lanes is one vector access, as it is for the arrays of a launch. In a function
// that takes the address of one (z.ptr), the array of lane 0 comes first, then that of lane 1: each is packed memory.
#include "codegen/emitter.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Operation;

namespace {

// Per thread. A group of 16 lanes then needs 1 MiB of the stack of its worker.
constexpr std::int64_t kMostLocalBytes = 64 * 1024;

}  // namespace

// pointer + number * stride bytes; null stays null.
Leaf Emitter::moved(Leaf& pointer, Leaf& number, Leaf& stride) {
    return moved_gradient(pointer, [&] {
        return lift({&pointer, &number, &stride}, [&](Values v) {
            return builder_.CreateGEP(builder_.getInt8Ty(), v[0], builder_.CreateMul(v[1], v[2]));
        });
    });
}

// before: %s = slice %a[axis], %start, %count, %step
// after:  data + start * stride; the extent of the axis is count, its stride is stride * step; without a count the axis
//         is dropped
void Emitter::emit_slice(const Operation& operation) {
    const ir::Value *array = operation.operands[0], *start = operation.operands[1];
    const auto axis = static_cast<std::size_t>(operation.ints[0]);
    const bool keeps_axis = operation.operands.size() > 2, has_step = operation.operands.size() > 3;
    llvm::Value* const ok =
        options_.debug && !keeps_axis ? check_access(operation, operation.operands[1], axis) : nullptr;
    LaneValue& view = value(array);
    const auto ndim = static_cast<std::size_t>(array->type.ndim());
    const auto widened = [&](const ir::Value* v) {
        Leaf& number = leaf(v);
        if (options_.huge && number.wide) return Leaf::of_scalar(number.wide);
        return lift({&number}, [&](Values n) { return conversions_.cast(n[0], v->type.scalar(), Scalar::i64); });
    };
    const auto stepped = [&](Leaf& from) {
        Leaf step = widened(operation.operands[3]);
        return lift({&from, &step}, [&](Values v) { return builder_.CreateMul(v[0], v[1]); });
    };
    Leaf number = widened(start);
    Leaf& stride = view.leaves[kShapeLeaf + ndim + axis];
    LaneValue result{operation.result()->type, {}, view.root};
    result.leaves.push_back(moved(view.leaves[kDataLeaf], number, stride));
    result.leaves.push_back(moved(view.leaves[kGradLeaf], number, stride));
    for (std::size_t first : {std::size_t{kShapeLeaf}, kShapeLeaf + ndim}) {
        for (std::size_t at = 0; at < ndim; ++at) {
            if (at != axis)
                result.leaves.push_back(view.leaves[first + at]);
            else if (keeps_axis && first == kShapeLeaf)
                result.leaves.push_back(widened(operation.operands[2]));
            else if (keeps_axis)
                result.leaves.push_back(has_step ? stepped(stride) : stride);
        }
    }
    if (ok) make_empty_unless(ok, result);
    set(operation.result(), std::move(result));
}

// Appends the strides of a packed array whose extents are set. `last` is the stride of the last axis, in bytes.
void Emitter::append_packed_strides(LaneValue& array, Leaf last) {
    const auto ndim = static_cast<std::size_t>(array.type.ndim());
    llvm::SmallVector<Leaf, kMaxDims> strides(ndim);
    for (std::size_t axis = ndim; axis-- > 0;) {
        strides[axis] = last;
        last =
            lift({&last, &array.leaves[kShapeLeaf + axis]}, [&](Values v) { return builder_.CreateMul(v[0], v[1]); });
    }
    array.leaves.append(strides.begin(), strides.end());
}

// Whether the function takes the address of an array that is not a parameter: that may be a local one, whichever way it
// came.
bool Emitter::takes_local_addresses() {
    if (!takes_local_addresses_) {
        takes_local_addresses_ = false;
        ir::for_each_operation(kernel_.body, [&](const Operation& operation) {
            if (operation.op != ir::Op::address && operation.op != ir::Op::overlay) return;
            const ir::Value* root = ir::root_of(operation.operands[0]);
            *takes_local_addresses_ |= root->definition != nullptr || root->region != &kernel_.body;
        });
    }
    return *takes_local_addresses_;
}

void Emitter::emit_local_array(const Operation& operation) {
    const Type type = operation.result()->type, element = type.element();
    const std::int64_t size = element.size_bytes();
    std::int64_t count = 1;
    for (const std::int64_t extent : operation.ints) count *= extent;
    if (!operation.unset) local_bytes_ += count * size;  // arrays that the compiler adds are bounded by their pass
    if (local_bytes_ > kMostLocalBytes) {
        throw CompileError(operation.span,
                           "the arrays made in kernel '" + kernel_.name + "' need " + std::to_string(local_bytes_) +
                               " bytes for each thread, and there are " + std::to_string(kMostLocalBytes),
                           {{Note::Kind::help, "make them smaller, or pass an array with a row for each thread", {}}},
                           ErrorCategory::value);
    }
    llvm::Value* memory = stack_slot(bytes_type(count * size * lanes_.count), llvm::Align(64));
    const bool is_packed = lanes_.count > 1 && takes_local_addresses();
    const std::int64_t to_next_lane = is_packed ? count * size : size;
    const std::int64_t to_next_element = is_packed ? size : size * lanes_.count;
    const Leaf data = lanes_.count == 1 ? Leaf::of_scalar(memory) : Leaf::of_linear(memory, to_next_lane);

    // Only the active lanes are zeroed: another lane may still use its array of an earlier iteration.
    if (operation.unset) {
        // Written before it is read.
    } else if (!mask_) {
        builder_.CreateMemSet(memory, builder_.getInt8(0), static_cast<std::uint64_t>(count * size * lanes_.count),
                              llvm::Align(64));
    } else {
        llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("zero"), *after = new_block("zeroed");
        builder_.CreateBr(loop);
        builder_.SetInsertPoint(loop);
        llvm::PHINode* k = builder_.CreatePHI(builder_.getInt64Ty(), 2);
        k->addIncoming(i64(0), before);
        Address address;
        address.base = builder_.CreateGEP(builder_.getInt8Ty(), memory, builder_.CreateMul(k, i64(to_next_element)));
        address.step = i64(to_next_lane);
        for (const LeafType& part : leaf_types(element)) {
            Leaf zero = zero_leaf(part, false);
            store_leaf(address, part, zero);
        }
        llvm::Value* next = builder_.CreateAdd(k, i64(1));
        k->addIncoming(next, builder_.GetInsertBlock());
        builder_.CreateCondBr(builder_.CreateICmpSLT(next, i64(count)), loop, after);
        builder_.SetInsertPoint(after);
    }

    LaneValue result{type, {}, {}};
    result.leaves.push_back(data);
    result.leaves.push_back(Leaf::of_scalar(llvm::ConstantPointerNull::get(builder_.getPtrTy())));
    for (const std::int64_t extent : operation.ints) result.leaves.push_back(Leaf::of_scalar(i64(extent)));
    append_packed_strides(result, Leaf::of_scalar(i64(to_next_element)));
    set(operation.result(), std::move(result));
}

// The stacks of the lanes are interleaved as local arrays are, in scratch memory of the worker, which is released in
// reverse order. All lanes get as much as the longest of them needs.
void Emitter::emit_stack(const Operation& operation) {
    const Type type = operation.result()->type, element = type.element();
    const std::int64_t size = element.size_bytes();
    Leaf count = lift({&leaf(operation.operands[0])}, [&](Values v) {
        return conversions_.cast(v[0], operation.operands[0]->type.scalar(), Scalar::i64);
    });
    llvm::Value* most = count.scalar;
    if (operation.operands.size() > 1) {  // as many rows as there is room for
        const auto [memory, rows] = take_long_scratch(operation, size * lanes_.count);
        return set_stack(operation, memory, rows);
    }
    if (count.varying()) {
        llvm::Value *counts = count.vector, *none = llvm::Constant::getNullValue(counts->getType());
        if (mask_) counts = builder_.CreateSelect(lanes_.here(mask_), counts, none);
        most = builder_.CreateIntMaxReduce(counts, /*IsSigned=*/true);
    }
    llvm::Value* memory = take_scratch(operation, builder_.CreateMul(most, i64(size * lanes_.count)));
    if (!first_stack_) first_stack_ = memory;
    set_stack(operation, memory, most);
}

void Emitter::set_stack(const Operation& operation, llvm::Value* memory, llvm::Value* most) {
    has_stacks_ = true;
    const Type type = operation.result()->type;
    const std::int64_t size = type.element().size_bytes();
    LaneValue result{type, {}, {}};
    result.leaves.push_back(lanes_.count == 1 ? Leaf::of_scalar(memory) : Leaf::of_linear(memory, size));
    result.leaves.push_back(Leaf::of_scalar(llvm::ConstantPointerNull::get(builder_.getPtrTy())));
    result.leaves.push_back(Leaf::of_scalar(most));
    append_packed_strides(result, Leaf::of_scalar(i64(size * lanes_.count)));
    set(operation.result(), std::move(result));
}

void Emitter::emit_array_at(const Operation& operation) {
    const Type type = operation.result()->type;
    LaneValue result{type, {}, {}};
    result.leaves.push_back(lift({&leaf(operation.operands[0])}, [&](Values v) -> llvm::Value* {
        llvm::Type* pointer = builder_.getPtrTy();
        return builder_.CreateIntToPtr(v[0], v[0]->getType()->isVectorTy() ? lanes_.of(pointer) : pointer);
    }));
    result.leaves.push_back(Leaf::of_scalar(llvm::ConstantPointerNull::get(builder_.getPtrTy())));
    append_extents(result, operation, 1);
    set(operation.result(), std::move(result));
}

void Emitter::emit_argument(const Operation& operation) {
    const Type type = operation.result()->type;
    const auto number = static_cast<std::size_t>(operation.operands[0]->index);
    std::vector<Type> types;
    for (const ir::Value* parameter : kernel_.parameters()) types.push_back(parameter->type);
    LaneValue result{type, {}, {static_cast<int>(number), false}};
    result.leaves.push_back(Leaf::of_scalar(byte_offset(arguments_, argument_layout(types).offsets[number])));
    result.leaves.push_back(Leaf::of_scalar(llvm::ConstantPointerNull::get(builder_.getPtrTy())));
    result.leaves.push_back(Leaf::of_scalar(i64(1)));
    append_packed_strides(result, Leaf::of_scalar(i64(type.element().size_bytes())));
    set(operation.result(), std::move(result));
}

// The id is mostly uniform; otherwise each lane looks its object up.
void Emitter::emit_object(const Operation& operation) {
    finds_objects_ = true;
    Leaf& id = leaf(operation.operands[0]);
    const std::int64_t kind = operation.ints[0];
    if (options_.debug) check(operation, has_object(id.scalar, kind), FaultKind::no_object, id.scalar, i64(kind), 0);
    if (!id.varying()) return set(operation.result(), Leaf::of_scalar(find_object(id.scalar, kind)));
    llvm::Value* ids = vector(id);
    llvm::Value* nothing = llvm::Constant::getNullValue(ids->getType());
    set(operation.result(), Leaf::of_vector(for_each_active_lane(nothing, [&](llvm::Value* lane, llvm::Value* found) {
            llvm::Value* address = find_object(builder_.CreateExtractElement(ids, lane), kind);
            return builder_.CreateInsertElement(found, address, lane);
        })));
}

// Appends the extents, operands from `first` on, and the strides of packed elements.
void Emitter::append_extents(LaneValue& array, const Operation& operation, std::size_t first) {
    for (std::size_t i = first; i < operation.operands.size(); ++i) {
        array.leaves.push_back(lift({&leaf(operation.operands[i])},
                                    [&](Values v) { return conversions_.cast(v[0], Scalar::i32, Scalar::i64); }));
    }
    append_packed_strides(array, Leaf::of_scalar(i64(array.type.element().size_bytes())));
}

void Emitter::emit_address(const Operation& operation) {
    set(operation.result(), lift({&value(operation.operands[0]).leaves[kDataLeaf]}, [&](Values v) {
            llvm::Type* number = builder_.getInt64Ty();
            return builder_.CreatePtrToInt(v[0], v[0]->getType()->isVectorTy() ? lanes_.of(number) : number);
        }));
}

void Emitter::emit_overlay(const Operation& operation) {
    LaneValue& whole = value(operation.operands[0]);
    Leaf& offset = leaf(operation.operands[1]);
    const auto moved = [&](Leaf& pointer) {
        return lift({&pointer, &offset},
                    [&](Values v) { return builder_.CreateGEP(builder_.getInt8Ty(), v[0], v[1]); });
    };
    LaneValue result{operation.result()->type, {}, whole.root};
    result.leaves.push_back(moved(whole.leaves[kDataLeaf]));
    result.leaves.push_back(moved_gradient(whole.leaves[kGradLeaf], [&] { return moved(whole.leaves[kGradLeaf]); }));
    append_extents(result, operation, 2);
    set(operation.result(), std::move(result));
}

}  // namespace weft::codegen
