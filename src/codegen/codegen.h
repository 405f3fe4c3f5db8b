// Lowers IR to LLVM IR, over a lane count W: W = 1 is the scalar kernel. Every IR value becomes its flat list of
// components, each a scalar (uniform across lanes) or a <W x scalar>. LLVM IR holds no aggregates, so that vec3
// arithmetic of W threads is three SIMD operations.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "binary/binary.h"
#include "codegen/native.h"
#include "ir/ir.h"
#include "ir/specialization.h"
#include "transform/plan.h"

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace weft::codegen {

// Larger kernels become scalar code unless the caller chooses a lane count.
inline constexpr int kMostOperationsInLanes = 10000;

// The properties of a specialization that code generation reads: the rows of ir/specialization.def with that column.
struct Options {
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) WEFT_ONLY_##code(type name = usual;)
#include "ir/specialization.def"
};

// The target's properties that emission depends on.
struct TargetInfo : Target {
    int vector_bits = 128;  // preferred width of a SIMD register
    // Whether the processor's own gathers and scatters beat single accesses.
    bool fast_gathers = false, fast_scatters = false;
    // Whether loads of whole vectors, lane by lane, and shuffles beat a gather of each component.
    bool loads_rows = false;
    // Of GPUs: whether the functions of math.def are those of libclc, LLVM's library, and not of NVIDIA's libdevice.
    bool has_libclc = false;
};
// Whether divergent accesses and loops are cheap on this CPU: it has fast gathers, and registers for masks.
bool has_quick_lanes(const TargetInfo& target);

// The properties of a CPU that the lane count depends on.
transform::VectorUnit vector_unit(const TargetInfo& target);

// The promises of launches of such code, and the properties of the target, for the analyses.
transform::PlanOptions plan_options(const Options& options, const TargetInfo& target);

struct Lowered {
    std::unique_ptr<llvm::Module> module;
    std::vector<KernelEntry> kernels;
    std::vector<NativeFunction> natives;  // functions in C++ that the kernels call by binary/binary.h's native_symbol()
};

// Attribute of device-library functions that the runtime provides, compiled for the processor it runs on.
inline constexpr char kOfRuntime[] = "weft-of-runtime";

// Attribute of a kernel's function: how many of its loops iterate over threads.
inline constexpr char kThreadLoops[] = "weft-thread-loops";

// All calls in kernels are inlined, except those of noinline functions. Precondition: `plan` was made of `module` with
// plan_options(options, target). Entry points have the signature of KernelEntryPoint.
Lowered lower(const ir::Module& module, const transform::ModulePlan& plan, const TargetInfo& target,
              const Options& options, llvm::LLVMContext& context);

}  // namespace weft::codegen
