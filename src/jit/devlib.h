// The device library (src/devlib) as bitcode inside this program, and how a module gets what it calls of it.
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

// Gives `module` the bodies of the functions of the library that it calls, and nothing else of it; small ones are
// inlined, but for those declared noinline. Before optimisation. Throws InternalError where the library lacks one.
void link_devlib(llvm::Module& module, Target::Kind kind);

}  // namespace weft::jit
