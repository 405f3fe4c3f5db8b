// libdevice, NVIDIA's mathematical functions for GPUs as LLVM bitcode. The build puts it into the compiler
// (cmake/libdevice.cmake); a build that found none looks for it on the machine, when a kernel first needs it.
//
// libclc, LLVM's own functions (Debian's package libclc-22), takes its place where $WARP_LIBDEVICE says so, or where
// Weft was built with it. Which of the two a file is, is seen by the functions in it.
#pragma once

#include <span>
#include <string>

namespace llvm {
class Module;
}

namespace weft::jit {

// As it was found when Weft was built; empty where there was none. Generated.
std::span<const unsigned char> bundled_libdevice();

// Of the one that is used: the file $WARP_LIBDEVICE where it is set, or the system's libclc where it is "libclc"; else
// the bundled one; else that of a toolkit in $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, or the newest /usr/local/cuda-*.
struct Libdevice {
    std::string name;  // for messages; empty where there is none
    std::string bitcode;
    bool is_libclc = false;
};
const Libdevice& libdevice();

// What of it code depends on, for the key of the cache.
std::string libdevice_version();

// Gives `module` the bodies of the functions of the library that it calls, for code of this processor ("sm_90"), to be
// inlined but where there are very many calls. Throws UsageError where there is no libdevice, or none that can be read.
void link_libdevice(llvm::Module& module, const std::string& processor);

}  // namespace weft::jit
