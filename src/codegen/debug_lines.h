// Debug information: the lines of the user's source.
#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>

#include "ir/ir.h"

namespace weft::codegen {

// The lines of one LLVM function. `only_lines`: for profilers, without the rest of a debugger's needs.
class DebugLines {
public:
    DebugLines(llvm::Module& module, const ir::Function& kernel, llvm::Function& function, bool only_lines);

    // Gives the following instructions this line; an empty span means the kernel's first.
    void set(llvm::IRBuilder<>& builder, Span span);
    // Must be called once, behind the last instruction.
    void finalize() { debug_.finalize(); }

private:
    llvm::DIFile* file(const std::string& path);
    llvm::DIScope* scope(Span span);

    const ir::Function& kernel_;
    llvm::DIBuilder debug_;
    llvm::DISubprogram* subprogram_ = nullptr;
    std::map<std::string, llvm::DIScope*> scopes_;  // by path
};

}  // namespace weft::codegen
