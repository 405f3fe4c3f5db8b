// Neighbouring lanes that access neighbouring vectors of many components: a wide access for each lane, and a
// transposition in registers. Accesses component by component would be an instruction or two for each number.
//
// W lanes and W components are a block of W rows. The last block overlaps the one before if W does not divide the
// number of components: it reads some numbers again, or writes the same ones again.
#include "codegen/cpu/emitter.h"

namespace weft::codegen {

bool CpuEmitter::transposes(const Address& address, const std::vector<LeafType>& leaves,
                            std::int64_t element_bytes) const {
    const auto count = static_cast<int>(leaves.size());
    return count > kMostInterleaved && count >= lanes_.count && is_packed(address, leaves, element_bytes);
}

// J. O. Eklundh, "A fast computer method for matrix transposing" (1972): exchanges blocks beside the diagonal, of half
// the size, a quarter, and so on.
static void transpose(llvm::IRBuilderBase& builder, llvm::MutableArrayRef<llvm::Value*> rows) {
    const std::size_t count = rows.size();
    for (std::size_t distance = count / 2; distance > 0; distance /= 2) {
        llvm::SmallVector<int, 16> left, right;
        for (std::size_t p = 0; p < count; ++p) {
            const bool is_left = (p & distance) == 0;
            left.push_back(static_cast<int>(is_left ? p : count + p - distance));
            right.push_back(static_cast<int>(is_left ? p + distance : count + p));
        }
        for (std::size_t row = 0; row < count; ++row) {
            if ((row & distance) != 0) continue;
            llvm::Value *const a = rows[row], *const b = rows[row + distance];
            rows[row] = builder.CreateShuffleVector(a, b, left);
            rows[row + distance] = builder.CreateShuffleVector(a, b, right);
        }
    }
}

void CpuEmitter::for_each_block(const Address& address, const std::vector<LeafType>& leaves,
                                const std::function<void(const PackedBlock&)>& visit) {
    const int count = static_cast<int>(leaves.size());
    const std::int64_t size = info(leaves[0].scalar).bytes();
    for (int done = 0; done < count; done += lanes_.count) {
        PackedBlock block{std::min(done, count - lanes_.count), done, {}};
        for (int lane = 0; lane < lanes_.count; ++lane)
            block.rows.push_back(
                byte_offset(address.base, (static_cast<std::int64_t>(lane) * count + block.first) * size));
        visit(block);
    }
}

void CpuEmitter::load_transposed(const Address& address, const std::vector<LeafType>& leaves, LaneValue& result) {
    auto* const type = llvm::FixedVectorType::get(memory_type(leaves[0]), static_cast<unsigned>(lanes_.count));
    const llvm::Align alignment(static_cast<std::uint64_t>(info(leaves[0].scalar).bytes()));
    for_each_block(address, leaves, [&](const PackedBlock& block) {
        llvm::SmallVector<llvm::Value*, 16> rows;
        for (llvm::Value* pointer : block.rows)
            rows.push_back(with_alias(builder_.CreateAlignedLoad(type, pointer, alignment), address.root));
        transpose(builder_, rows);
        for (int i = block.done - block.first; i < lanes_.count; ++i)
            result.leaves.push_back(Leaf::of_vector(from_memory(rows[static_cast<std::size_t>(i)], leaves[0])));
    });
}

void CpuEmitter::store_transposed(const Address& address, const std::vector<LeafType>& leaves, LaneValue& value) {
    const llvm::Align alignment(static_cast<std::uint64_t>(info(leaves[0].scalar).bytes()));
    for_each_block(address, leaves, [&](const PackedBlock& block) {
        llvm::SmallVector<llvm::Value*, 16> rows;
        for (int i = 0; i < lanes_.count; ++i)
            rows.push_back(to_memory(vector(value.leaves[static_cast<std::size_t>(block.first + i)]), leaves[0]));
        transpose(builder_, rows);
        for (int lane = 0; lane < lanes_.count; ++lane) {
            const auto at = static_cast<std::size_t>(lane);
            with_alias(builder_.CreateAlignedStore(rows[at], block.rows[at], alignment), address.root);
        }
    });
}

}  // namespace weft::codegen
