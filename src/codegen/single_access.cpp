// Gathers and scatters as one scalar access for each lane, for processors without fast instructions for them.
//
// before   masked.gather(pointers, mask)
// after    pointers = select(mask, pointers, zeros)      zeros: a constant of the module
//          each lane: load pointers[lane]
//
// masked.scatter is the same with scratch memory on the stack for inactive lanes. LLVM's own expansion branches around
// every access. Branches are slower if lanes are off irregularly, and a large kernel comes to thousands of blocks, for
// which LLVM's register allocator needs seconds. All parts of an element share the pointers.
#include "codegen/emitter.h"

namespace weft::codegen {

namespace {

// The size of the largest element that the region loads or stores, at least 8 bytes.
std::int64_t largest_access(const ir::Region& region) {
    std::int64_t bytes = 8;
    for (const ir::Operation* operation : region.operations) {
        if (operation->op == ir::Op::load) bytes = std::max(bytes, operation->result()->type.size_bytes());
        if (operation->op == ir::Op::store) bytes = std::max(bytes, operation->operands.back()->type.size_bytes());
        for (const ir::Region* nested : operation->regions) bytes = std::max(bytes, largest_access(*nested));
    }
    return bytes;
}

}  // namespace

llvm::Value* Emitter::memory_for_idle_lanes(bool for_store) {
    llvm::Value*& memory = idle_lanes_[for_store];
    if (memory) return memory;
    auto* type = llvm::ArrayType::get(builder_.getInt8Ty(), static_cast<std::uint64_t>(largest_access(kernel_.body)));
    if (for_store) {
        memory = stack_slot(type, llvm::Align(16), "scraps");
    } else {
        auto* zeros = new llvm::GlobalVariable(module_, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                               llvm::Constant::getNullValue(type), "zeros");
        zeros->setAlignment(llvm::Align(16));
        memory = zeros;
    }
    return memory;
}

llvm::ArrayRef<llvm::Value*> Emitter::single_pointers(Address& address, bool for_store) {
    llvm::SmallVector<llvm::Value*, 16>& singles = address.singles[for_store];
    if (!singles.empty()) return singles;
    llvm::Value* all = pointers(address, 0);
    if (mask_) all = builder_.CreateSelect(lanes_.here(mask_), all, lanes_.splat(memory_for_idle_lanes(for_store)));
    for (int lane = 0; lane < lanes_.count; ++lane)
        singles.push_back(builder_.CreateExtractElement(all, static_cast<std::uint64_t>(lane)));
    return singles;
}

llvm::Value* Emitter::load_singly(Address& address, const LeafType& type) {
    llvm::Type* scalar = memory_type(type);
    llvm::Align alignment(static_cast<std::uint64_t>(size_of(type)));
    llvm::Value* loaded = llvm::PoisonValue::get(lanes_.of(scalar));
    std::uint64_t lane = 0;
    for (llvm::Value* pointer : single_pointers(address, false)) {
        llvm::LoadInst* load = builder_.CreateAlignedLoad(scalar, byte_offset(pointer, type.offset), alignment);
        loaded = builder_.CreateInsertElement(loaded, with_alias(load, address.root), lane++);
    }
    return loaded;
}

void Emitter::store_singly(Address& address, const LeafType& type, llvm::Value* stored) {
    llvm::Align alignment(static_cast<std::uint64_t>(size_of(type)));
    std::uint64_t lane = 0;
    for (llvm::Value* pointer : single_pointers(address, true)) {
        llvm::Value* element = builder_.CreateExtractElement(stored, lane++);
        with_alias(builder_.CreateAlignedStore(element, byte_offset(pointer, type.offset), alignment), address.root);
    }
}

}  // namespace weft::codegen
