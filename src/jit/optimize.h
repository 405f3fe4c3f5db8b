// LLVM's middle end over one lowered module. The pipeline is short and picked by hand: codegen already writes explicit
// SIMD for inlined kernels, so that the passes which find vectors, inline functions or work across functions have
// nothing to do.
#pragma once

namespace llvm {
class Module;
}

namespace weft::jit {

// Level 0 leaves the module alone, 1 tidies it, 2 adds what works on loops and memory, 3 adds unrolling.
// Sets triple, data layout and the functions' vector-width attributes first.
void optimize(llvm::Module& module, int optimization_level);

// Triple, data layout and attributes only: what emit_object needs of a module that was not optimised.
void prepare(llvm::Module& module, int optimization_level);

}  // namespace weft::jit
