// LLVM's middle end over one lowered module. The pipeline is short and picked by hand: codegen already writes explicit
// SIMD for inlined kernels, so that the passes which find vectors, inline functions or work across functions have
// nothing to do.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace weft::jit {

// At a level from 1 to 3 (Backend::optimize).
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, int level);

}  // namespace weft::jit
