// Alias metadata: accesses to different memories of a launch do not alias.
//
// Each array parameter and each gradient is a memory of its own, if the launch promises so (`noalias`, which
// program/kernel/launch_layout.h decides). For each memory, a list of all others would be quadratic in their number.
// Instead every bit of a memory's number is a domain of two scopes, 0 and 1. An access is in the scopes that its own
// bits name and aliases nothing in the opposite ones. Two memories differ in some bit, and LLVM needs one domain that
// tells them apart.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/IR/Metadata.h>

#include <map>

#include "codegen/value.h"
#include "ir/ir.h"

namespace weft::codegen {

class AliasScopes {
public:
    // A number for each memory of a parameter.
    static int key(MemoryRoot root) { return 2 * root.parameter + (root.gradient ? 1 : 0); }

    // Makes the scopes of the kernel's array parameters. Without it, mark() does nothing.
    void open(const ir::Function& kernel, llvm::LLVMContext& context);
    void mark(llvm::Instruction& access, MemoryRoot root) const;

private:
    struct Scopes {
        llvm::MDNode* own = nullptr;
        llvm::MDNode* others = nullptr;
    };
    std::map<int, Scopes> scopes_;  // by key()
};

}  // namespace weft::codegen
