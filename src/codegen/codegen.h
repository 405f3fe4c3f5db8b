// IR to LLVM IR, written once over a lane count W: W = 1 is the scalar kernel. Every IR value becomes its flat list of
// components, each a scalar (uniform across lanes) or a <W x scalar>; aggregates never exist in LLVM IR, so that vec3
// arithmetic of W threads is three SIMD operations.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "binary/binary.h"
#include "codegen/native.h"
#include "ir/ir.h"
#include "transform/analysis/plan.h"

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace weft::codegen {

// Lanes are neighbours on the last axis of a launch, so that rows of so few threads leave most of them idle.
inline constexpr int kShortRow = 4;
// Kernels of more operations run in scalar code where the caller does not say how many lanes they get.
inline constexpr int kMostOperationsInLanes = 10000;

struct Options {
    bool debug = false;              // bounds, division and assert checks that write a Fault
    bool notes_accesses = false;     // with `debug` and one lane: the runtime hears of each access (weft_access)
    bool fast_math = false;          // allow reassociation and approximations
    bool fuse_fp = true;             // products and the sums that use them are rounded once
    bool line_info = false;          // debug information with the user's lines
    int lanes = 0;                   // 0: what the target prefers
    bool short_rows = false;         // launches have at most kShortRow threads on the last of several axes
    bool dense = true;               // the innermost dimensions of array parameters are packed
    bool noalias = true;             // array parameters do not overlap each other
    bool null_arrays = false;        // array parameters may be None: each access asks, and a fault ends the launch
    bool private_gradients = false;  // each worker has transform::scattered_gradients() to itself
    // Arrays have more than 2^31 - 1 elements along a dimension: with one lane, 32-bit integers that come from extents
    // are computed in 64 bits too, wherever they decide about elements.
    bool huge = false;
    // Of CUDA kernels: threads of a block, blocks that a multiprocessor is to have room for, and registers of a thread.
    // 0: no limit.
    int most_threads = 0, least_blocks = 0, max_registers = 0;
};

// What launches of such code promise to the analyses.
transform::PlanOptions plan_options(const Options& options);

// What a target offers that emission depends on.
struct TargetInfo : Target {
    int vector_bits = 128;  // preferred width of a SIMD register
    // Whether the processor's own gathers and scatters beat single accesses.
    bool fast_gathers = false, fast_scatters = false;
    // Whether loads of whole vectors, lane by lane, and shuffles beat a gather of each component.
    bool loads_rows = false;
    // Of GPUs: whether the functions of math.def are those of libclc, LLVM's library, and not of NVIDIA's libdevice.
    bool has_libclc = false;
};
// Whether lanes of a CPU go through memory and loops apart at little cost: by gathers, and masks in registers of their
// own.
bool has_quick_lanes(const TargetInfo& target);

struct Lowered {
    std::unique_ptr<llvm::Module> module;
    std::vector<KernelEntry> kernels;
    std::vector<NativeFunction> natives;  // functions in C++ that the kernels call by binary/binary.h's native_symbol()
};

// Attribute of a function of the device library that the runtime has, compiled for the processor it runs on.
inline constexpr char kOfRuntime[] = "weft-of-runtime";

// Attribute of a kernel's function: how many of its loops are those over its threads.
inline constexpr char kThreadLoops[] = "weft-thread-loops";

// Kernels have their calls inlined, but for those of functions that large kernels share. `plan` is that of the module
// with plan_options(options). Entry points have the signature of KernelEntryPoint.
Lowered lower(const ir::Module& module, const transform::ModulePlan& plan, const TargetInfo& target,
              const Options& options, llvm::LLVMContext& context);

}  // namespace weft::codegen
