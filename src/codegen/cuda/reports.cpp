// Threads report to the host through the CudaReports of the launch (binary/cuda_abi.h). Texts stay on the host: a
// report has the number of its text, and its arguments in words of 8 bytes.
#include "binary/cuda_abi.h"
#include "codegen/cuda/emitter.h"

namespace weft::codegen {

llvm::Value* CudaEmitter::call_library(const char* symbol, llvm::Type* result, Values arguments) {
    llvm::SmallVector<llvm::Type*, 8> types;
    for (llvm::Value* argument : arguments) types.push_back(argument->getType());
    auto callee = module_.getOrInsertFunction(symbol, llvm::FunctionType::get(result, types, false));
    llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
    return builder_.CreateCall(callee, arguments);
}

void CudaEmitter::report(const char* symbol, Values arguments) {
    reporting_.reports = true;
    call_library(symbol, builder_.getVoidTy(), arguments);
}

llvm::Value* CudaEmitter::fault_record(FaultKind kind) {
    return byte_offset(
        launch_, kind == FaultKind::not_finite ? offsetof(CudaReports, not_finite) : offsetof(CudaReports, fault));
}

void CudaEmitter::report_fault(const FaultReport& fault) {
    const auto number = [&](std::uint32_t value) { return builder_.getInt32(value); };
    report("weft_lib_report_fault",
           {fault_record(fault.kind), number(static_cast<std::uint32_t>(fault.kind)), fault.thread, fault.index,
            fault.size, number(static_cast<std::uint32_t>(fault.axis)), number(fault.site)});
}

// Numbers start at 1.
llvm::Value* CudaEmitter::format_number(llvm::Value* format) {
    auto* text = llvm::cast<llvm::GlobalVariable>(format);
    const auto* bytes = llvm::dyn_cast<llvm::ConstantDataArray>(text->getInitializer());
    reporting_.formats.push_back(bytes ? bytes->getAsCString().str() : "");
    reporting_.texts.push_back(text);
    return i64(static_cast<std::int64_t>(reporting_.formats.size()));
}

void CudaEmitter::report_raise(llvm::Value* thread, std::uint32_t site, llvm::Value* format, llvm::Value* words,
                               std::int64_t count) {
    constexpr auto kind = FaultKind::raised;
    report("weft_lib_report_raise",
           {fault_record(kind), builder_.getInt32(static_cast<std::uint32_t>(kind)), thread, builder_.getInt32(site),
            format_number(format), words, builder_.getInt32(static_cast<std::uint32_t>(count))});
}

void CudaEmitter::report_print(llvm::Value* format, llvm::Value* words, std::int64_t count) {
    reporting_.prints = true;
    report("weft_lib_report_print",
           {launch_, format_number(format), words, builder_.getInt32(static_cast<std::uint32_t>(count))});
}

llvm::Value* CudaEmitter::find_object(llvm::Value* id, std::int64_t kind) {
    return call_library("weft_lib_find_object", builder_.getInt64Ty(),
                        {objects_, id, builder_.getInt32(static_cast<std::uint32_t>(kind))});
}

llvm::Value* CudaEmitter::has_object(llvm::Value* id, std::int64_t kind) {
    llvm::Value* found = call_library("weft_lib_has_object", builder_.getInt32Ty(),
                                      {objects_, id, builder_.getInt32(static_cast<std::uint32_t>(kind))});
    return builder_.CreateICmpNE(found, builder_.getInt32(0));
}

}  // namespace weft::codegen
