// libdevice, NVIDIA's mathematical functions for GPUs as LLVM bitcode. The build embeds it (cmake/libdevice.cmake). If
// it found none, the machine is searched when a kernel first needs it.
//
// libclc, LLVM's own functions (Debian's package libclc-22), replaces it if $WARP_LIBDEVICE says so, or if Weft was
// built with it. The functions in a file tell the two libraries apart.
#pragma once

#include <span>
#include <string>

namespace llvm {
class Module;
}

namespace weft::jit {

// The file found when Weft was built; empty if there was none. Generated.
std::span<const unsigned char> bundled_libdevice();

// The library in use, the first of these:
//
// - $WARP_LIBDEVICE if set: a file, or "libclc" for the system's libclc;
// - the bundled one;
// - that of the first toolkit (cuda_toolkits()) that has one.
struct Libdevice {
    std::string name;  // for messages; empty if there is none
    std::string bitcode;
    bool is_libclc = false;
};
const Libdevice& libdevice();

// A hash of the library, for the key of the cache.
std::string libdevice_version();

// Links into `module` the functions of the library that it calls, for code of this processor (such as "sm_90"). They
// are inlined, unless there are very many calls. Throws UsageError if there is no libdevice, or none that can be read.
void link_libdevice(llvm::Module& module, const std::string& processor);

}  // namespace weft::jit
