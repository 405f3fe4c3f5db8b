// Functions in C++ (@wp.func_native) become object files: a clang of the machine compiles codegen's text behind
// include/weft/native.h. Nothing else in Weft needs a compiler, so it is looked for when the first such function is
// met. Objects are cached by text, options and compiler.
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
    std::string compiler;                        // a name or path (wp.config.host_compiler); "": looked for
    std::optional<std::filesystem::path> cache;  // a folder; nothing is cached without
};

// Throws CompileError: at the line of the snippet that is wrong, or at the call where there is no compiler.
std::vector<std::byte> compile_native(const codegen::NativeFunction& function, const Target& target,
                                      const NativeOptions& options);

}  // namespace weft::jit
