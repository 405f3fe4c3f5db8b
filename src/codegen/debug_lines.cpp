#include "codegen/debug_lines.h"

#include <llvm/BinaryFormat/Dwarf.h>

namespace weft::codegen {

DebugLines::DebugLines(llvm::Module& module, const ir::Function& kernel, llvm::Function& function, bool only_lines)
    : kernel_(kernel), debug_(module) {
    if (!module.getModuleFlag("Debug Info Version"))
        module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    llvm::DIFile* const path = file(kernel.span ? kernel.span.source->path : "<kernel>");
    debug_.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_Python), path, "weft", true, "", 0, "",
                             only_lines ? llvm::DICompileUnit::DebugDirectivesOnly : llvm::DICompileUnit::FullDebug);
    auto* type = debug_.createSubroutineType(debug_.getOrCreateTypeArray({}));
    auto line = static_cast<unsigned>(kernel.span.line);
    // No linkage name: GDB would show it in place of the kernel's.
    subprogram_ =
        debug_.createFunction(path, kernel.name, /*LinkageName=*/"", path, line, type, line, llvm::DINode::FlagZero,
                              llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
    function.setSubprogram(subprogram_);
}

llvm::DIFile* DebugLines::file(const std::string& path) {
    std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? debug_.createFile(path, "")
                                      : debug_.createFile(path.substr(slash + 1), path.substr(0, slash));
}

// Functions are inlined, and may come from other files than the kernel.
llvm::DIScope* DebugLines::scope(Span span) {
    if (!span || span.source->path == (kernel_.span ? kernel_.span.source->path : "")) return subprogram_;
    llvm::DIScope*& scope = scopes_[span.source->path];
    if (!scope) scope = debug_.createLexicalBlockFile(subprogram_, file(span.source->path));
    return scope;
}

void DebugLines::set(llvm::IRBuilder<>& builder, Span span) {
    auto line = static_cast<unsigned>(span ? span.line : kernel_.span.line);
    builder.SetCurrentDebugLocation(
        llvm::DILocation::get(builder.getContext(), line, static_cast<unsigned>(span.column + 1), scope(span)));
}

}  // namespace weft::codegen
