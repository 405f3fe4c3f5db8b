// Functions in C++ (@wp.func_native) become object files: a clang of the machine compiles codegen's text behind
// include/weft/native.h. Nothing else in Weft needs a compiler, so the first such function triggers the search for it.
// Objects are cached by text, options and compiler.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "binary/target.h"
#include "codegen/native.h"

namespace weft::jit {

struct NativeOptions {
    std::string compiler;                        // a name or path (wp.config.host_compiler); "": searched
    std::optional<std::filesystem::path> cache;  // a folder; without one nothing is cached
};

// Throws CompileError: at the line of the snippet with the error, or at the call if there is no compiler.
std::vector<std::byte> compile_native(const codegen::NativeFunction& function, const Target& target,
                                      const NativeOptions& options);

}  // namespace weft::jit
