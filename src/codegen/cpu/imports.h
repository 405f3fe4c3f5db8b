// Declarations of the runtime's functions that code for CPUs calls (binary/cpu_imports.def).
#pragma once

#include <llvm/IR/Module.h>

namespace weft::codegen {

enum class Import {
#define WEFT_IMPORT(symbol, signature, effects, function) symbol,
#include "binary/cpu_imports.def"
#undef WEFT_IMPORT
};

// Declares the function at its first call. `keeps_registers`: the processor has preserve_all, the copiers' convention.
llvm::Function* declare(llvm::Module& module, Import import, bool keeps_registers = false);

}  // namespace weft::codegen
