// Calls of the runtime from code for CPUs: scratch memory of a worker, faults, prints.
//
// Scratch memory is a stack of each worker: it is released in reverse order.
#include "codegen/cpu/emitter.h"
#include "ir/walk.h"

namespace weft::codegen {

using ir::Operation;

llvm::CallInst* CpuEmitter::call_runtime(Import import, Values arguments) {
    llvm::Function* function = declare(module_, import, cpu_.keeps_registers);
    llvm::CallInst* call = builder_.CreateCall(function, arguments);
    call->setCallingConv(function->getCallingConv());
    return call;
}

llvm::Value* CpuEmitter::take_scratch(const Operation&, llvm::Value* bytes) {
    return call_runtime(Import::weft_stack_take, {bytes});
}

void CpuEmitter::release_scratch(llvm::Value* first) { call_runtime(Import::weft_stack_release, {first}); }

// The worker's next threads overwrite it.
std::pair<llvm::Value*, llvm::Value*> CpuEmitter::take_long_scratch(const Operation& operation,
                                                                    std::int64_t row_bytes) {
    std::int64_t number = 0, found = -1;
    ir::for_each_operation(kernel_.body, [&](const Operation& other) {
        if (&other == &operation) found = number;
        number += other.op == ir::Op::stack && other.operands.size() > 1;
    });
    llvm::Value* rows = stack_slot(builder_.getInt64Ty(), llvm::Align(8));
    llvm::Value* memory = call_runtime(Import::weft_long_stack, {i64(found), i64(row_bytes), rows});
    return {memory, builder_.CreateLoad(builder_.getInt64Ty(), rows)};
}

void CpuEmitter::report_fault(const FaultReport& fault) {
    const auto number = [&](std::uint32_t value) { return builder_.getInt32(value); };
    call_runtime(Import::weft_fault,
                 {launch_, number(static_cast<std::uint32_t>(fault.kind)), fault.thread, fault.index, fault.size,
                  number(static_cast<std::uint32_t>(fault.axis)), number(fault.site)});
}

void CpuEmitter::report_access(const AccessReport& access) {
    const auto number = [&](std::int64_t value) { return builder_.getInt32(static_cast<std::uint32_t>(value)); };
    call_runtime(Import::weft_access, {launch_, access.pointer, i64(access.bytes), access.thread, number(access.unit),
                                       number(static_cast<std::int64_t>(access.kind)), number(access.site)});
}

void CpuEmitter::report_raise(llvm::Value* thread, std::uint32_t site, llvm::Value* format, llvm::Value* words,
                              std::int64_t count) {
    call_runtime(Import::weft_raise, {launch_, thread, builder_.getInt32(site), format, words, i64(count)});
}

llvm::Value* CpuEmitter::find_object(llvm::Value* id, std::int64_t kind) {
    return call_runtime(Import::weft_find_object, {id, builder_.getInt32(static_cast<std::uint32_t>(kind))});
}

llvm::Value* CpuEmitter::has_object(llvm::Value* id, std::int64_t kind) {
    llvm::Value* found =
        call_runtime(Import::weft_has_object, {id, builder_.getInt32(static_cast<std::uint32_t>(kind))});
    return builder_.CreateICmpNE(found, builder_.getInt32(0));
}

void CpuEmitter::report_print(llvm::Value* format, llvm::Value* words, std::int64_t count) {
    call_runtime(Import::weft_print_words, {format, words, i64(count)});
}

}  // namespace weft::codegen
