// From an optimised LLVM module to the bytes of an object file, or to assembly text.
#pragma once

#include <string>

namespace llvm {
class Module;
class TargetMachine;
enum class CodeGenFileType;
}  // namespace llvm

namespace weft::jit {

std::string emit_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind);

}  // namespace weft::jit
