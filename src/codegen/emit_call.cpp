// Noinline functions of large kernels (transform/inline/noinline_functions.h), in scalar code: internal LLVM functions
// of the module. Each leaf of a parameter is a parameter, each leaf of a result an element of the returned struct. LLVM
// puts those that do not fit in registers on the stack. Array parameters carry no alias information: they may overlap.
// If they may be None, an access reports that as in the kernel. The function then returns, and the kernel's thread
// leaves, as it does after a raise.
#include <algorithm>

#include "codegen/emitter.h"
#include "ir/typing.h"
#include "support/error.h"

namespace weft::codegen {

using ir::Operation;

bool Callees::takes_launch(const ir::Function& function) const {
    return reporting.contains(&function) ||
           (may_get_null && std::ranges::any_of(function.parameters(), [](const ir::Value* parameter) {
                return ir::holds_array(parameter->type);
            }));
}

bool Emitter::takes_objects(const ir::Function& function) const {
    return machine_.object_tables && callees_.finding.contains(&function);
}

llvm::Function* Emitter::declare_callee(const std::string& symbol) {
    llvm::SmallVector<llvm::Type*> parameters, results;
    for (const ir::Value* parameter : kernel_.parameters())
        for (const LeafType& leaf : leaf_types(parameter->type)) parameters.push_back(register_type(leaf));
    for (const ir::Value* returned : kernel_.body.terminator()->operands)
        for (const LeafType& leaf : leaf_types(returned->type)) results.push_back(register_type(leaf));
    if (callees_.takes_launch(kernel_)) {
        parameters.push_back(builder_.getPtrTy());
        parameters.push_back(builder_.getInt64Ty());
        results.push_back(builder_.getInt1Ty());
    }
    if (takes_objects(kernel_)) parameters.push_back(builder_.getPtrTy());
    llvm::Type* result = results.empty() ? builder_.getVoidTy() : llvm::StructType::get(context_, results);
    auto* type = llvm::FunctionType::get(result, parameters, false);
    auto* callee = llvm::Function::Create(type, llvm::Function::InternalLinkage, symbol, module_);
    callee->setDoesNotThrow();
    return callee;
}

void Emitter::emit_callee(llvm::Function* callee) {
    open_function(callee);
    llvm::Argument* argument = callee->arg_begin();
    for (const ir::Value* parameter : kernel_.parameters()) {
        LaneValue passed{parameter->type, {}, {}};
        for (int i = leaf_count(parameter->type); i > 0; --i) passed.leaves.push_back(Leaf::of_scalar(argument++));
        set(parameter, std::move(passed));
    }
    const bool takes_launch = callees_.takes_launch(kernel_);
    if (takes_launch) {
        launch_ = argument++;
        thread_of_caller_ = argument++;
        leave_ = new_block("leave");
    }
    if (takes_objects(kernel_)) objects_ = argument++;
    emit_region(kernel_.body);
    if (callee->getReturnType()->isVoidTy()) {
        builder_.CreateRetVoid();
    } else {
        llvm::Value* result = llvm::PoisonValue::get(callee->getReturnType());
        unsigned at = 0;
        for (const ir::Value* returned : kernel_.body.terminator()->operands)
            for (Leaf& leaf : value(returned).leaves) result = builder_.CreateInsertValue(result, leaf.scalar, at++);
        if (takes_launch) result = builder_.CreateInsertValue(result, builder_.getFalse(), at);
        builder_.CreateRet(result);
    }
    if (takes_launch) {
        builder_.SetInsertPoint(leave_);
        llvm::Value* nothing = llvm::Constant::getNullValue(callee->getReturnType());
        const unsigned last = callee->getReturnType()->getStructNumElements() - 1;
        builder_.CreateRet(builder_.CreateInsertValue(nothing, builder_.getTrue(), last));
    }
    if (debug_) debug_->finalize();
}

void Emitter::emit_call(const Operation& operation) {
    const auto callee = callees_.functions.find(operation.function);
    WEFT_CHECK(callee != callees_.functions.end() && lanes_.count == 1,
               "codegen: '" + kernel_.name + "' still calls '" + operation.function->name + "'; it is to be inlined");
    llvm::SmallVector<llvm::Value*> arguments;
    for (const ir::Value* operand : operation.operands)
        for (Leaf& leaf : value(operand).leaves) arguments.push_back(leaf.scalar);
    const bool takes_launch = callees_.takes_launch(*operation.function);
    if (takes_launch) {
        arguments.push_back(launch_);
        arguments.push_back(thread_number(nullptr));
    }
    if (takes_objects(*operation.function)) arguments.push_back(objects_);
    llvm::CallInst* call = builder_.CreateCall(callee->second, arguments);
    if (takes_launch) {
        const unsigned last = call->getType()->getStructNumElements() - 1;
        llvm::BasicBlock* after = new_block("called");
        builder_.CreateCondBr(builder_.CreateExtractValue(call, last), leave_, after);
        builder_.SetInsertPoint(after);
    }
    if (operation.results.empty()) return;
    LaneValue returned{operation.result()->type, {}, {}};
    for (int i = 0; i < leaf_count(operation.result()->type); ++i)
        returned.leaves.push_back(Leaf::of_scalar(builder_.CreateExtractValue(call, static_cast<unsigned>(i))));
    set(operation.result(), std::move(returned));
}

}  // namespace weft::codegen
