// Calls of library functions (ir::LibraryFunction).
//
// A device-library function that runs in lanes gets each operand and the result by a pointer to their components, each
// in all lanes (devlib/lanes.h). Inlining removes these copies. A function that takes a mask gets the mask and the
// number of lanes as its last arguments (devlib/spatial/functions.h).
//
// Others are called for one lane after the other. They take the leaves of their operands one by one (bool as i8, an
// array as a pointer to an ArrayView) and return a scalar. Any other result is written in its memory layout through a
// pointer, the first argument.
#include <algorithm>

#include "codegen/emitter.h"

namespace weft::codegen {

using ir::Operation;

void Emitter::emit_call_library(const Operation& operation) {
    using Form = ir::LibraryFunction::Form;
    finds_objects_ |= operation.library->reaches_memory();
    operation.library->form == Form::each_lane ? emit_call_for_each_lane(operation) : emit_call_in_lanes(operation);
}

void Emitter::emit_call_in_lanes(const Operation& operation) {
    const bool is_masked = operation.library->form == ir::LibraryFunction::Form::masked;
    bool is_uniform = operation.library->is_uniform;
    for (const ir::Value* operand : operation.operands)
        for (const Leaf& leaf : value(operand).leaves) is_uniform &= leaf.uniform();
    const int width = is_uniform ? 1 : lanes_.count;
    const auto room = [&](const std::vector<LeafType>& leaves) {
        return stack_slot(bytes_type(static_cast<std::int64_t>(leaves.size()) * 8 * width),
                          llvm::Align(static_cast<std::uint64_t>(std::max(64, 8 * width))));
    };
    const auto place = [&](llvm::Value* slot, const LeafType& leaf, std::size_t number) {
        return byte_offset(slot, static_cast<std::int64_t>(number) * size_of(leaf) * width);
    };
    const auto alignment = [&](const LeafType& leaf) { return llvm::Align(static_cast<std::uint64_t>(size_of(leaf))); };

    const Type type = operation.results.empty() ? Type::none() : operation.result()->type;
    const std::vector<LeafType> results = leaf_types(type);
    llvm::Value* result = results.empty() ? nullptr : room(results);
    llvm::SmallVector<llvm::Value*, 12> arguments;
    if (result) arguments.push_back(result);
    for (const ir::Value* operand : operation.operands) {
        const std::vector<LeafType> leaves = leaf_types(operand->type);
        llvm::Value* slot = room(leaves);
        for (std::size_t l = 0; l < leaves.size(); ++l) {
            Leaf& leaf = value(operand).leaves[l];
            llvm::Value* number = to_memory(width == 1 ? leaf.scalar : vector(leaf), leaves[l]);
            builder_.CreateAlignedStore(number, place(slot, leaves[l], l), alignment(leaves[l]));
        }
        arguments.push_back(slot);
    }
    llvm::SmallVector<llvm::Type*, 12> parameters(arguments.size(), builder_.getPtrTy());
    std::string symbol = operation.library->symbol;
    if (is_masked) {
        llvm::Value* active = width == 1 ? nullptr : active_lanes();
        llvm::Type* bits = builder_.getIntNTy(static_cast<unsigned>(width));
        arguments.push_back(
            active ? builder_.CreateZExtOrTrunc(builder_.CreateBitCast(active, bits), builder_.getInt64Ty()) : i64(1));
        arguments.push_back(builder_.getInt32(static_cast<std::uint32_t>(width)));
        parameters.append({builder_.getInt64Ty(), builder_.getInt32Ty()});
    } else {
        symbol += "_w" + std::to_string(width);
    }
    llvm::FunctionCallee callee =
        module_.getOrInsertFunction(symbol, llvm::FunctionType::get(builder_.getVoidTy(), parameters, false));
    auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setDoesNotThrow();
    if (is_masked) function->addFnAttr(kOfRuntime);
    builder_.CreateCall(callee, arguments);
    if (!result) return;

    LaneValue whole{type, {}, {}};
    for (std::size_t l = 0; l < results.size(); ++l) {
        llvm::Type* scalar = memory_type(results[l]);
        llvm::Value* from = place(result, results[l], l);
        llvm::Value* number =
            builder_.CreateAlignedLoad(width == 1 ? scalar : lanes_.of(scalar), from, alignment(results[l]));
        number = from_memory(number, results[l]);
        whole.leaves.push_back(width == 1 ? Leaf::of_scalar(number) : Leaf::of_vector(number));
    }
    set(operation.result(), std::move(whole));
}

void Emitter::emit_call_for_each_lane(const Operation& operation) {
    const ir::Value* result = operation.results.empty() ? nullptr : operation.result();
    Type type = result ? result->type : Type::none();
    bool returns = type.is_scalar(), writes = !returns && !type.is_none();
    std::vector<LeafType> leaves = leaf_types(type);
    auto passed = [&](const LeafType& leaf) { return memory_type(leaf); };

    // Memory for values that go through pointers, allocated once in the entry block, with the alignment of a whole
    // vector of results.
    const auto room = [&](std::int64_t bytes) { return stack_slot(bytes_type(bytes), llvm::Align(64)); };
    llvm::Value* written = writes ? room(type.size_bytes()) : nullptr;
    std::vector<llvm::Type*> parameters;
    std::vector<llvm::Value*> views;
    if (writes) parameters.push_back(builder_.getPtrTy());
    for (const ir::Value* operand : operation.operands) {
        if (operand->type.is_array()) {
            views.push_back(room(static_cast<std::int64_t>(sizeof(ArrayView))));
            parameters.push_back(builder_.getPtrTy());
        } else {
            views.push_back(nullptr);
            for (const LeafType& leaf : leaf_types(operand->type)) parameters.push_back(passed(leaf));
        }
    }
    llvm::Type* returned = returns ? passed(leaves[0]) : builder_.getVoidTy();
    llvm::FunctionCallee callee =
        module_.getOrInsertFunction(operation.library->symbol, llvm::FunctionType::get(returned, parameters, false));
    llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();

    // One slot of results per leaf and lane, in memory: the loop over lanes carries nothing.
    std::vector<llvm::Value*> slots;
    for (const LeafType& leaf : leaves)
        slots.push_back(room((leaf.pointer ? 8 : info(leaf.scalar).bytes()) * lanes_.count));
    auto in_memory = [&](llvm::Value* scalar, const LeafType& leaf) {
        return !leaf.pointer && leaf.scalar == Scalar::boolean ? builder_.CreateZExt(scalar, builder_.getInt8Ty())
                                                               : scalar;
    };
    for_each_active_lane(nullptr, [&](llvm::Value* lane, llvm::Value*) -> llvm::Value* {
        std::vector<llvm::Value*> arguments;
        if (writes) arguments.push_back(written);
        for (std::size_t i = 0; i < operation.operands.size(); ++i) {
            LaneValue& operand = value(operation.operands[i]);
            std::vector<LeafType> types = leaf_types(operation.operands[i]->type);
            for (std::size_t l = 0; l < types.size(); ++l) {
                llvm::Value* scalar = in_memory(lane_of(operand.leaves[l], lane), types[l]);
                if (views[i])
                    builder_.CreateStore(scalar, byte_offset(views[i], types[l].offset));
                else
                    arguments.push_back(scalar);
            }
            if (views[i]) arguments.push_back(views[i]);
        }
        llvm::Value* call = builder_.CreateCall(callee, arguments);
        for (std::size_t l = 0; l < leaves.size(); ++l) {
            llvm::Value* scalar =
                returns ? call : builder_.CreateLoad(passed(leaves[l]), byte_offset(written, leaves[l].offset));
            builder_.CreateStore(scalar, builder_.CreateGEP(passed(leaves[l]), slots[l], lane));
        }
        return nullptr;
    });
    if (!result) return;
    LaneValue whole{type, {}, {}};
    for (std::size_t l = 0; l < leaves.size(); ++l) {
        if (lanes_.count == 1)
            whole.leaves.push_back(
                Leaf::of_scalar(from_memory(builder_.CreateLoad(passed(leaves[l]), slots[l]), leaves[l])));
        else
            whole.leaves.push_back(Leaf::of_vector(from_memory(
                builder_.CreateAlignedLoad(lanes_.of(passed(leaves[l])), slots[l], llvm::Align(64)), leaves[l])));
    }
    set(result, std::move(whole));
}

}  // namespace weft::codegen
