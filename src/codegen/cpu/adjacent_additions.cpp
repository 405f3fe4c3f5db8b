// Additions to neighbouring elements (transform/analysis/adjacent_additions.h), combined in registers.
//
//     before:  u.grad[i, j + 1 ... j + W] += a;  u.grad[i, j ... j + W - 1] += b;  u.grad[i, j - 1 ... j + W - 2] += c
//     after:   u.grad[i, j + 1 ... j + W] += a + (b one lane down) + (c two lanes down)
//              u.grad[i, j - 1 ... j]     += the first lanes of b and c, which the shifts drop
//
// The next group of lanes begins at the end of this one's vector, and its dropped lanes are inside that vector. So no
// load overlaps an earlier store in part, which would defeat store forwarding.
#include <algorithm>

#include "codegen/cpu/emitter.h"

namespace weft::codegen {

using ir::Op;
using ir::Operation;

// Whether all lanes are active, and the elements that they add to may be adjacent in memory.
bool CpuEmitter::can_add_together(const transform::AdjacentAdditions& group) {
    if (lanes_.count == 1 || mask_) return false;
    const std::vector<ir::Value*>& operands = group.members[0].add->operands;
    const std::size_t count = operands.size() - 2;  // of indices
    LaneValue& array = value(operands[0]);
    if (!array.leaves[kDataLeaf].uniform()) return false;
    for (std::size_t i = 1; i < count; ++i)
        if (!leaf(operands[i]).uniform()) return false;
    Leaf& stride = array.leaves[static_cast<std::size_t>(stride_leaf(operands[0]->type)) + count - 1];
    auto* distance = stride.uniform() ? llvm::dyn_cast<llvm::ConstantInt>(stride.scalar) : nullptr;
    return distance && distance->getSExtValue() == operands.back()->type.size_bytes();
}

// Emits all additions of the group, at the place of the last one.
void CpuEmitter::emit_adjacent_additions(const transform::AdjacentAdditions& group) {
    using Member = transform::AdjacentAdditions::Member;
    const Member& highest = *std::max_element(group.members.begin(), group.members.end(),
                                              [](auto& a, auto& b) { return a.offset < b.offset; });
    const auto index_of = [](const Operation& add) { return add.operands[add.operands.size() - 2]; };

    // The element of lane 0 for each member, and whether the other lanes follow it at the offsets of the analysis.
    llvm::Value *together = builder_.getTrue(), *is_middle = builder_.getTrue();
    std::vector<llvm::Value*> firsts;
    for (const Member& member : group.members) {
        is_middle = builder_.CreateAnd(is_middle, in_middle(*member.add));
        const ir::Value* index = index_of(*member.add);
        if (!leaf(index).varying()) {
            firsts.push_back(wide(leaf(index), index->type.scalar()));
            continue;
        }
        auto [is_run, first] = run_test(index);
        firsts.push_back(conversions_.cast(first, index->type.scalar(), Scalar::i64));
        together = builder_.CreateAnd(together, is_run);
    }
    llvm::Value* last_place = firsts[static_cast<std::size_t>(&highest - group.members.data())];
    for (std::size_t i = 0; i < firsts.size(); ++i) {
        llvm::Value* distance = builder_.CreateSub(last_place, firsts[i]);
        together = builder_.CreateAnd(together,
                                      builder_.CreateICmpEQ(distance, i64(highest.offset - group.members[i].offset)));
    }

    std::vector<ir::Value*> values;
    for (const Member& member : group.members)
        values.insert(values.end(), member.add->operands.begin(), member.add->operands.end());
    emit_either(
        together, "together", [&] { apart(values, [&] { add_together(group, highest, is_middle); }); },
        [&] {
            apart(values, [&] {
                for (const Member& member : group.members) add_within_chunk(*member.add);
            });
        });
}

void CpuEmitter::add_together(const transform::AdjacentAdditions& group,
                              const transform::AdjacentAdditions::Member& highest, llvm::Value* is_middle) {
    const std::vector<ir::Value*>& operands = highest.add->operands;
    const Type type = operands.back()->type;
    const Scalar scalar = type.scalar();
    const std::int64_t size = type.size_bytes();
    llvm::Value* nothing = lanes_.splat(neutral(Op::atomic_add, scalar));
    llvm::Value *sum = nullptr, *left_over = nullptr;
    const auto add_to = [&](llvm::Value*& total, llvm::Value* part) {
        total = total ? binary(Op::add, scalar, total, part) : part;
    };
    std::int64_t most = 0;
    for (const auto& member : group.members) most = std::max(most, highest.offset - member.offset);
    for (const auto& member : group.members) {
        llvm::Value* added = vector(value(member.add->operands.back()).leaves[0]);
        const auto shift = static_cast<int>(highest.offset - member.offset);
        llvm::SmallVector<int, 16> lanes, first_lanes;
        for (int lane = 0; lane < lanes_.count; ++lane) lanes.push_back(lane + shift);
        for (int place = 0; place < most; ++place) {
            const int lane = place - static_cast<int>(most) + shift;
            first_lanes.push_back(lane >= 0 ? lane : lanes_.count);
        }
        add_to(sum, shift == 0 ? added : builder_.CreateShuffleVector(added, nothing, lanes));
        if (shift > 0) add_to(left_over, builder_.CreateShuffleVector(added, nothing, first_lanes));
    }

    const ir::Value* index = operands[operands.size() - 2];
    if (leaf(index).varying())
        leaf(index) = Leaf::of_linear(builder_.CreateExtractElement(leaf(index).vector, std::uint64_t{0}), 1);
    const Address address = address_of(operands[0], llvm::ArrayRef<ir::Value*>(operands).drop_front().drop_back());
    const llvm::Align alignment(static_cast<std::uint64_t>(size));
    const auto add_plainly = [&](llvm::Value* pointer, llvm::Value* part) {
        llvm::Value* before = with_alias(builder_.CreateAlignedLoad(part->getType(), pointer, alignment), address.root);
        with_alias(builder_.CreateAlignedStore(binary(Op::add, scalar, before, part), pointer, alignment),
                   address.root);
    };
    const auto add_by_atomics = [&](llvm::Value* pointer, llvm::Value* part) {
        const unsigned count = llvm::cast<llvm::FixedVectorType>(part->getType())->getNumElements();
        for (unsigned lane = 0; lane < count; ++lane)
            atomic_scalar(Op::atomic_add, scalar, byte_offset(pointer, lane * size), nullptr,
                          builder_.CreateExtractElement(part, std::uint64_t{lane}));
    };
    const auto add = [&](const auto& add_at) {
        add_at(address.base, sum);
        if (left_over) add_at(byte_offset(address.base, -most * size), left_over);
    };
    emit_either(is_middle, "middle", [&] { add(add_plainly); }, [&] { add(add_by_atomics); });
}

}  // namespace weft::codegen
