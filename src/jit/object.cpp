#include "jit/object.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "support/error.h"

namespace weft::jit {

std::string emit_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    // Code generation still runs under LLVM's older pass manager.
    llvm::legacy::PassManager passes;
    if (machine.addPassesToEmitFile(passes, stream, nullptr, kind))
        throw InternalError("LLVM cannot write code of this kind for " + module.getTargetTriple().str());
    passes.run(module);
    return {bytes.begin(), bytes.end()};
}

}  // namespace weft::jit
