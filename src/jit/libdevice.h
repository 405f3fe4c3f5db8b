// libdevice, NVIDIA's mathematical functions for GPUs as LLVM bitcode. The build puts it into the compiler
// (cmake/libdevice.cmake); a build that found none looks for it on the machine, when a kernel first needs it.
#pragma once

#include <span>
#include <string>

namespace llvm {
class Module;
}

namespace weft::jit {

// As it was found when Weft was built; empty where there was none. Generated.
std::span<const unsigned char> bundled_libdevice();

// Of the one that is used: the file $WARP_LIBDEVICE where it is set; else the bundled one; else that of a toolkit in
// $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, or the newest /usr/local/cuda-*.
struct Libdevice {
    std::string name;  // for messages; empty where there is none
    std::string bitcode;
};
const Libdevice& libdevice();

// What of it code depends on, for the key of the cache.
std::string libdevice_version();

// Gives `module` the bodies of the functions __nv_* that it calls, for code of this processor ("sm_90"), to be
// inlined but where there are very many calls. Throws UsageError where there is no libdevice, or none that can be read.
void link_libdevice(llvm::Module& module, const std::string& processor);

}  // namespace weft::jit
