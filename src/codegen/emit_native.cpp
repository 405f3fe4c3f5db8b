// Calls of functions in C++ (native.h): one call for all lanes. Arguments and results go through memory in the layout
// of arrays, so that no calling convention of a C++ compiler matters.
#include "binary/binary.h"
#include "codegen/emitter.h"
#include "codegen/native.h"

namespace weft::codegen {

using ir::Operation;

void Emitter::emit_call_native(const Operation& operation) {
    // Memory in the entry block for `count` values of a type; 64 bytes align a whole vector.
    const auto room = [&](Type type, int count) {
        return stack_slot(bytes_type(type.size_bytes() * count), llvm::Align(64));
    };
    const auto at = [&](llvm::Value* slot, Type type, int lane, const LeafType& leaf) {
        return byte_offset(slot, type.size_bytes() * lane + leaf.offset);
    };
    llvm::Value* lanes = lanes_.count == 1 || !mask_
                             ? i64(lanes_.count == 64 ? -1 : (std::int64_t{1} << lanes_.count) - 1)
                             : builder_.CreateZExt(lanes_.bits(mask_), builder_.getInt64Ty());
    llvm::SmallVector<llvm::Value*, 12> arguments{lanes};
    const Type type = operation.results.empty() ? Type::none() : operation.result()->type;
    llvm::Value* result = type.is_none() ? nullptr : room(type, lanes_.count);
    arguments.push_back(result ? result : llvm::Constant::getNullValue(builder_.getPtrTy()));
    for (const ir::Value* operand : operation.operands) {
        const std::vector<LeafType> leaves = leaf_types(operand->type);
        LaneValue& passed = value(operand);
        bool uniform = true;
        for (const Leaf& leaf : passed.leaves) uniform &= leaf.uniform() || lanes_.count == 1;
        const int count = uniform ? 1 : lanes_.count;
        llvm::Value* slot = room(operand->type, count);
        for (std::size_t l = 0; l < leaves.size(); ++l) {
            if (uniform) {
                builder_.CreateStore(to_memory(passed.leaves[l].scalar, leaves[l]),
                                     at(slot, operand->type, 0, leaves[l]));
                continue;
            }
            llvm::Value* all = to_memory(vector(passed.leaves[l]), leaves[l]);
            if (leaves.size() == 1) {
                builder_.CreateAlignedStore(all, slot, llvm::Align(64));
                continue;
            }
            for (int lane = 0; lane < lanes_.count; ++lane)
                builder_.CreateStore(builder_.CreateExtractElement(all, static_cast<std::uint64_t>(lane)),
                                     at(slot, operand->type, lane, leaves[l]));
        }
        arguments.push_back(slot);
        arguments.push_back(i64(uniform ? 0 : operand->type.size_bytes()));
    }

    llvm::SmallVector<llvm::Type*, 12> parameters;
    for (const llvm::Value* argument : arguments) parameters.push_back(argument->getType());
    const std::string symbol = native_symbol(natives_.number(operation));
    llvm::FunctionCallee callee =
        module_.getOrInsertFunction(symbol, llvm::FunctionType::get(builder_.getVoidTy(), parameters, false));
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setDoesNotThrow();
    function->setConvergent();  // it may have barriers, on GPUs
    builder_.CreateCall(callee, arguments);
    if (!result) return;

    LaneValue whole{type, {}, {}};
    const std::vector<LeafType> leaves = leaf_types(type);
    for (const LeafType& leaf : leaves) {
        llvm::Type* one = memory_type(leaf);
        if (lanes_.count == 1) {
            whole.leaves.push_back(
                Leaf::of_scalar(from_memory(builder_.CreateLoad(one, at(result, type, 0, leaf)), leaf)));
            continue;
        }
        llvm::Value* all = nullptr;
        if (leaves.size() == 1) {
            all = builder_.CreateAlignedLoad(lanes_.of(one), result, llvm::Align(64));
        } else {
            all = llvm::PoisonValue::get(lanes_.of(one));
            for (int lane = 0; lane < lanes_.count; ++lane)
                all = builder_.CreateInsertElement(all, builder_.CreateLoad(one, at(result, type, lane, leaf)),
                                                   static_cast<std::uint64_t>(lane));
        }
        whole.leaves.push_back(Leaf::of_vector(from_memory(all, leaf)));
    }
    set(operation.result(), std::move(whole));
}

}  // namespace weft::codegen
