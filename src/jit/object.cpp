#include "jit/object.h"

#include <cstring>

#include "jit/machine.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "support/error.h"

namespace weft::jit {

namespace {

llvm::SmallVector<char, 0> emit(llvm::Module& module, int optimization_level, llvm::CodeGenFileType kind) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    // Code generation still runs under LLVM's older pass manager.
    llvm::legacy::PassManager passes;
    if (host_machine(optimization_level).addPassesToEmitFile(passes, stream, nullptr, kind))
        throw InternalError("LLVM cannot write code of this kind for " + module.getTargetTriple().str());
    passes.run(module);
    return bytes;
}

}  // namespace

std::vector<std::byte> emit_object(llvm::Module& module, int optimization_level) {
    const auto emitted = emit(module, optimization_level, llvm::CodeGenFileType::ObjectFile);
    std::vector<std::byte> bytes(emitted.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), emitted.data(), bytes.size());
    return bytes;
}

std::string emit_assembly(llvm::Module& module, int optimization_level) {
    const auto emitted = emit(module, optimization_level, llvm::CodeGenFileType::AssemblyFile);
    return {emitted.begin(), emitted.end()};
}

}  // namespace weft::jit
