// The device library (src/devlib) as bitcode inside this program, and its linking into modules.
#pragma once

#include <cstddef>
#include <span>

#include "binary/target.h"

namespace llvm {
class Module;
}

namespace weft::jit {

// One source of src/devlib for one kind of target.
struct DevlibPart {
    Target::Kind kind;
    const unsigned char* bitcode;
    std::size_t size;
};
std::span<const DevlibPart> devlib_parts();

// Links into `module` the functions of the library that it calls, and no others; small ones are inlined, unless
// declared noinline. Must run before optimisation. Throws InternalError if the library lacks one.
void link_devlib(llvm::Module& module, Target::Kind kind);

}  // namespace weft::jit
