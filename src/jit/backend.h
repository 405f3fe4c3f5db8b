// The differences between kinds of targets in the use of LLVM. compile.cpp drives it; no other file depends on the
// kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "binary/binary.h"
#include "binary/target.h"
#include "codegen/codegen.h"

namespace llvm {
class Module;
}

namespace weft::jit {

// Thread-safe: all functions may be called from any thread.
class Backend {
public:
    virtual ~Backend() = default;

    // The target's properties that emission depends on. Throws UsageError if LLVM does not know the processor.
    virtual codegen::TargetInfo describe(const Target& target) const = 0;
    // The most states of one loop that an adjoint may keep in a thread, if threads have no growing stack; else empty.
    virtual std::optional<std::int64_t> stack_slots() const { return {}; }
    // Runs LLVM's passes over one lowered module, after setting its triple, data layout and function attributes. Level
    // 0 runs none, 1 tidies, 2 adds passes on loops and memory, 3 adds unrolling.
    virtual void optimize(llvm::Module& module, const Target& target, int level) const = 0;
    // The code of an optimised module, in the form that a Binary holds, and as text.
    virtual std::vector<std::byte> emit(llvm::Module& module, const Target& target, int level) const = 0;
    // Throws UsageError if the target would refuse to launch one of the kernels in the code that emit() made of
    // `module`.
    virtual void check(const llvm::Module& /*module*/, const Binary& /*binary*/) const {}
    virtual std::string emit_text(llvm::Module& module, const Target& target, int level) const = 0;
};

const Backend& backend(Target::Kind kind);

const Backend& cpu_backend();    // cpu.cpp
const Backend& nvptx_backend();  // nvptx.cpp

}  // namespace weft::jit
