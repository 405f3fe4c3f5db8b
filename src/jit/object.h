// From an optimised LLVM module to the bytes of an object file, or to assembly text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace weft::jit {

// The module must have been through optimize() or prepare().
std::vector<std::byte> emit_object(llvm::Module& module, int optimization_level);
std::string emit_assembly(llvm::Module& module, int optimization_level);

}  // namespace weft::jit
