// What of LLVM differs between kinds of targets. compile.cpp drives it; nothing else asks which target it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "binary/target.h"
#include "codegen/codegen.h"

namespace llvm {
class Module;
}

namespace weft::jit {

// All functions may be called from any thread.
class Backend {
public:
    virtual ~Backend() = default;

    // What emission depends on. Throws UsageError where LLVM does not know the processor.
    virtual codegen::TargetInfo describe(const Target& target) const = 0;
    // How many states of one loop an adjoint may keep in a thread, where threads have no stack that grows; else empty.
    virtual std::optional<std::int64_t> stack_slots() const { return {}; }
    // LLVM's passes over one lowered module. Level 0 leaves it alone, 1 tidies it, 2 adds what works on loops and
    // memory, 3 adds unrolling. Sets triple, data layout and attributes of functions first.
    virtual void optimize(llvm::Module& module, const Target& target, int level) const = 0;
    // The code of an optimised module as a Binary holds it, and as text.
    virtual std::vector<std::byte> emit(llvm::Module& module, const Target& target, int level) const = 0;
    virtual std::string emit_text(llvm::Module& module, const Target& target, int level) const = 0;
};

const Backend& backend(Target::Kind kind);

const Backend& cpu_backend();    // cpu.cpp
const Backend& nvptx_backend();  // nvptx.cpp

}  // namespace weft::jit
