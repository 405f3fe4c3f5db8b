// The functions of the runtime that code for CPUs calls (binary/cpu_imports.def), as declarations.
#pragma once

#include <llvm/IR/Module.h>

namespace weft::codegen {

enum class Import {
#define WEFT_IMPORT(symbol, signature, effects, function) symbol,
#include "binary/cpu_imports.def"
#undef WEFT_IMPORT
};

// Declared at its first call. `keeps_registers`: the processor's calling convention for copiers is there.
llvm::Function* declare(llvm::Module& module, Import import, bool keeps_registers = false);

}  // namespace weft::codegen
