// LLVM's middle end over one lowered module. The pipeline is short and written by hand. Codegen already writes explicit
// SIMD for inlined kernels: passes that vectorise, inline or work across functions would find nothing.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace weft::jit {

// Precondition: `level` is from 1 to 3 (Backend::optimize).
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, int level);

}  // namespace weft::jit
