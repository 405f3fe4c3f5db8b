// Functions in C++ (@wp.func_native): a clang of the machine compiles codegen's text behind include/weft/native.h. For
// CPUs it writes an object file, for CUDA devices bitcode, which becomes part of the kernel's module
// (link_native.cpp). Without a clang, NVRTC writes PTX for CUDA devices (nvrtc.h), which becomes part of the kernel's.
// Nothing else in Weft needs a compiler, so the first such function triggers the search for it. The files are cached by
// text, options and compiler.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "binary/target.h"
#include "codegen/native.h"
#include "jit/nvrtc.h"

namespace llvm {
class Module;
}

namespace weft::jit {

struct NativeOptions {
    std::string compiler;                        // a name or path (wp.config.host_compiler); "": searched
    std::optional<std::filesystem::path> cache;  // a folder; without one nothing is cached
};

struct NativeCode {
    std::vector<std::byte> bytes;
    bool is_ptx = false;  // of NVRTC
};
// Throws CompileError: at the line of the snippet with the error, or at the call if there is no compiler.
NativeCode compile_native(const codegen::NativeFunction& function, const Target& target, const NativeOptions& options);

// Compiles functions for a CUDA device and links them into the module that calls them, to be inlined. Throws the same,
// and CompileError at the call if the C++ uses something that GPUs do not have. The result has those of NVRTC, for
// with_functions().
std::vector<NvrtcFunction> link_natives(llvm::Module& module, const std::vector<codegen::NativeFunction>& functions,
                                        const Target& target, const NativeOptions& options);

// Whether NVIDIA's driver provides this function of C++ for GPUs.
bool is_of_cuda_driver(std::string_view function);

// A hash of the headers before each snippet, for cache keys.
std::string native_headers_version();

}  // namespace weft::jit
