// libdevice, NVIDIA's mathematical functions for GPUs as LLVM bitcode. It is a part of every CUDA toolkit and of the
// packages of Python that compile for GPUs, and is looked for on the machine when a kernel first needs it.
#pragma once

#include <filesystem>
#include <string>

namespace llvm {
class Module;
}

namespace weft::jit {

// $WARP_LIBDEVICE where it is set; else of $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, or the newest /usr/local/cuda-*.
// Empty where there is none.
const std::filesystem::path& libdevice_path();

// What of it code depends on, for the key of the cache.
std::string libdevice_version();

// Gives `module` the bodies of the functions __nv_* that it calls, to be inlined, for code of this processor ("sm_90").
// Throws UsageError where there is no libdevice, or none that can be read.
void link_libdevice(llvm::Module& module, const std::string& processor);

}  // namespace weft::jit
