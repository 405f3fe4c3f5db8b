// NVRTC, NVIDIA's compiler of CUDA C++ as a library: it compiles functions in C++ for CUDA devices on machines without
// a clang. Weft may not distribute it: it uses the user's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::jit {

// The library $WEFT_NVRTC; without that variable one of NVIDIA's Python packages beside this one, of a toolkit, or on
// the system's library path. The text identifies its version. Empty if there is none; `WEFT_NVRTC=0` asks for none.
// Throws UsageError if $WEFT_NVRTC is another library.
std::string find_nvrtc();
// Whether $WEFT_NVRTC names a library, which is then preferred to clang.
bool is_nvrtc_named();

struct NvrtcResult {
    std::string ptx;     // empty: it does not compile
    std::string errors;  // in the form of clang's: "file:line:column: error: text"
};
// Precondition: find_nvrtc() has found one. Any number of threads may compile at once.
NvrtcResult compile_by_nvrtc(const std::string& text, const std::string& processor);

// A module of the kernel's PTX with functions of NVRTC's in place of the declarations of `symbols`: functions of
// kNativeSymbol by the symbols that the kernel calls.
struct NvrtcFunction {
    std::string symbol, ptx;
};
std::string with_functions(std::string_view kernel, const std::vector<NvrtcFunction>& functions);

}  // namespace weft::jit
