// Gradients that neighbouring threads share (transform/analysis/halo.h): plain additions in the middle of a chunk, out
// of reach of other chunks, and atomics near its two ends.
//
//     before:  atomic.add u.grad[i - 1, j], d
//     after:   if (first < i - 1 && i - 1 < last) u.grad[i - 1, j ... j + W] += d; else atomic.add u.grad[i - 1, j], d
//
// The chunk begin .. end holds whole and cut slices of the first axis. Concurrent chunks hold the slices up to `before`
// and from `next` on, and touch elements up to `most` away from these. The elements in between are this chunk's own. A
// thread of the chunk touches elements up to `most` away from it: further inside, all of them are the chunk's own.
#include <limits>

#include "codegen/cpu/emitter.h"

namespace weft::codegen {

using ir::Operation;

void CpuEmitter::find_boundaries(llvm::Value* begin, llvm::Value* end) {
    const transform::Halo& halo = plan_.halo;
    if (halo.memories.empty()) return;
    llvm::Value* slice = i64(1);
    for (std::size_t axis = 1; axis < dims_.size(); ++axis) slice = builder_.CreateMul(slice, dims_[axis]);
    llvm::Value* twice = i64(2 * halo.most);
    llvm::Value* first = builder_.CreateUDiv(begin, slice);
    llvm::Value* is_whole = builder_.CreateICmpEQ(builder_.CreateMul(first, slice), begin);
    llvm::Value* before = builder_.CreateSub(first, builder_.CreateZExt(is_whole, builder_.getInt64Ty()));
    llvm::Value* is_first = builder_.CreateICmpEQ(begin, i64(0));
    constexpr auto kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();
    const auto after_others = [&](llvm::Value* by) {
        return builder_.CreateSelect(is_first, i64(kLeast), builder_.CreateAdd(before, by));
    };
    llvm::Value* next = builder_.CreateUDiv(end, slice);
    llvm::Value* is_last = builder_.CreateICmpEQ(end, builder_.CreateMul(slice, dims_[0]));
    const auto before_others = [&](llvm::Value* by) {
        return builder_.CreateSelect(is_last, i64(kMost), builder_.CreateSub(next, by));
    };
    middle_[0] = after_others(twice), middle_[1] = before_others(twice);
    own_[0] = after_others(i64(halo.most)), own_[1] = before_others(i64(halo.most));
    for (const ir::Value* bound : halo.bounds) {
        emit_invariant(bound);
        llvm::Value* largest = builder_.CreateSub(dims_[0], i64(1));
        llvm::Value* holds = builder_.CreateICmpSGE(wide(leaf(bound), bound->type.scalar()), largest);
        for (llvm::Value** last : {&middle_[1], &own_[1]}) *last = builder_.CreateSelect(holds, *last, i64(kLeast));
    }
}

bool CpuEmitter::is_shared_at_boundaries(const Operation& operation) const {
    const MemoryRoot memory = memory_of(operation);
    return plan_.halo.memories.contains(memory) && !private_memories_.contains(memory);
}

// Whether the elements of all lanes are out of reach of other chunks.
llvm::Value* CpuEmitter::in_middle(const Operation& access) {
    const ir::Value* const index = plan_.atomics.at(&access).first_index;
    if (leaf(index).uniform()) {
        llvm::Value* element = wide(leaf(index), index->type.scalar());
        return builder_.CreateAnd(builder_.CreateICmpSGT(element, own_[0]), builder_.CreateICmpSLT(element, own_[1]));
    }
    llvm::Value *at = coordinates_[0], *last = at;
    if (dims_.size() == 1) last = builder_.CreateAdd(at, i64(lanes_.count - 1));
    return builder_.CreateAnd(builder_.CreateICmpSGT(at, middle_[0]), builder_.CreateICmpSLT(last, middle_[1]));
}

void CpuEmitter::add_within_chunk(const Operation& operation) {
    const llvm::ArrayRef<ir::Value*> indices = llvm::ArrayRef<ir::Value*>(operation.operands).drop_front().drop_back();
    const auto one_by_one = [&] {
        const MemoryRoot memory = memory_of(operation);
        private_memories_.insert(memory);
        apart(indices, [&] { apply_in_lanes(operation); });
        private_memories_.erase(memory);
    };
    emit_either(
        in_middle(operation), "middle",
        [&] {
            if (!add_in_lanes(operation, indices, one_by_one)) one_by_one();
        },
        [&] { apart(indices, [&] { apply_in_lanes(operation); }); });
}

// Adds to the elements of all lanes at once, if all are distinct: at one distance from each other, or neighbours as a
// test at run time shows. False if the lanes must be taken one by one.
bool CpuEmitter::add_in_lanes(const Operation& operation, llvm::ArrayRef<ir::Value*> indices,
                              const std::function<void()>& otherwise) {
    const ir::Value* array = operation.operands[0];
    const ir::Value* added = operation.operands.back();
    std::vector<LeafType> leaves = leaf_types(added->type);
    for (const LeafType& type : leaves)
        if (type.scalar != Scalar::f32 && type.scalar != Scalar::f64) return false;
    auto add = [&](Address& address) {
        LaneValue sum = load_from(address, added->type);
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            Leaf& operand = value(added).leaves[i];
            sum.leaves[i] = lift({&sum.leaves[i], &operand},
                                 [&](Values v) { return binary(ir::Op::add, leaves[i].scalar, v[0], v[1]); });
        }
        store_to(address, added->type, sum);
    };
    if (is_run(array, indices)) {
        const ir::Value* index = indices.back();
        auto [is_plain, first] = run_test(index);
        emit_either(
            is_plain, "run",
            [&] {
                LaneValue saved = value(index);
                value(index).leaves[0] = Leaf::of_linear(first, 1);
                Address address = address_of(array, indices);
                value(index) = std::move(saved);
                llvm::Value* const mask = std::exchange(mask_, nullptr);  // all lanes are active
                add(address);
                mask_ = mask;
            },
            otherwise);
        return true;
    }
    Address address = address_of(array, indices);
    if (lanes_.count > 1 && (address.bases || address.offsets || !address.step)) return false;
    add(address);
    return true;
}

}  // namespace weft::codegen
