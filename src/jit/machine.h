// LLVM's side of a target: the machine that optimisation asks for costs and that writes the code.
#pragma once

#include "codegen/codegen.h"
#include "llvm/Target/TargetMachine.h"

namespace weft::jit {

// Makes LLVM know the host's processor family; any number of times, from any thread.
void initialize_host_target();

// A machine for host_target() at an optimisation level (0 to 3), made once per thread and level, since making one takes
// as long as compiling a small kernel.
llvm::TargetMachine& host_machine(int optimization_level);

}  // namespace weft::jit
