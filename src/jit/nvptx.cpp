// NVIDIA's GPUs: PTX as text, which the driver compiles for the GPU at hand.
//
// LLVM writes the lowest version of PTX that supports the processor, so that drivers as old as the processor accept it.
// Products and sums are fused only at the places that codegen marks: LLVM writes each with its rounding (mul.rn), and
// NVIDIA's compiler does not fuse operations with an explicit rounding.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "jit/backend.h"
#include "jit/libdevice.h"
#include "jit/local_memory.h"
#include "jit/native.h"
#include "jit/object.h"
#include "jit/optimize.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "support/error.h"

// llvm/Support/TargetSelect.h declares these only for all targets together.
extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace weft::jit {

namespace {

const llvm::Target& llvm_target(const llvm::Triple& triple) {
    static std::once_flag once;
    std::call_once(once, [] {
        LLVMInitializeNVPTXTargetInfo();
        LLVMInitializeNVPTXTarget();
        LLVMInitializeNVPTXTargetMC();
        LLVMInitializeNVPTXAsmPrinter();
    });
    std::string error;
    const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
    if (target == nullptr) throw InternalError("LLVM has no code generator for " + triple.str() + ": " + error);
    return *target;
}

void check_processor(const Target& target) {
    const llvm::Triple triple(target.triple);
    const std::unique_ptr<llvm::MCSubtargetInfo> processor(
        llvm_target(triple).createMCSubtargetInfo(triple, target.processor, target.features));
    constexpr int kOldest = 75;  // as in cuda_architectures()
    const bool is_known = processor != nullptr && processor->isCPUStringValid(target.processor);
    if (!is_known || std::atoi(target.processor.c_str() + 3) < kOldest)
        throw UsageError("launch()",
                         "there is no code for GPUs of architecture '" + target.processor +
                             "': the oldest is sm_75 (Turing), and this LLVM has to know it",
                         ErrorCategory::value);
}

}  // namespace

std::vector<int> cuda_architectures() {
    const llvm::Triple triple("nvptx64-nvidia-cuda");
    const std::unique_ptr<llvm::MCSubtargetInfo> known(llvm_target(triple).createMCSubtargetInfo(triple, "", ""));
    std::vector<int> found;
    for (int number = 75; known && number < 200; ++number)
        if (known->isCPUStringValid("sm_" + std::to_string(number))) found.push_back(number);
    return found;
}

namespace {

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, int level) {
    constexpr llvm::CodeGenOptLevel kLevels[] = {llvm::CodeGenOptLevel::None, llvm::CodeGenOptLevel::Less,
                                                 llvm::CodeGenOptLevel::Default, llvm::CodeGenOptLevel::Aggressive};
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // codegen marks the places
    const llvm::Triple triple(target.triple);
    std::unique_ptr<llvm::TargetMachine> machine(llvm_target(triple).createTargetMachine(
        triple, target.processor, target.features, options, std::nullopt, std::nullopt, kLevels[level]));
    if (machine == nullptr) throw InternalError("LLVM cannot make a code generator for " + target.triple);
    return machine;
}

// Per thread, as for CPUs.
llvm::TargetMachine& machine_for(const Target& target, int optimization_level) {
    struct CachedTarget {
        Target target;
        std::array<std::unique_ptr<llvm::TargetMachine>, 4> machines;
    };
    static thread_local std::deque<CachedTarget> all;
    auto known = std::ranges::find(all, target, &CachedTarget::target);
    if (known == all.end()) {
        check_processor(target);
        all.push_back({target, {}});
        known = std::prev(all.end());
    }
    const int level = std::clamp(optimization_level, 0, 3);
    std::unique_ptr<llvm::TargetMachine>& machine = known->machines[static_cast<std::size_t>(level)];
    if (machine == nullptr) machine = make_machine(target, level);
    return *machine;
}

void inline_library(llvm::Module& module) {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder builder;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    llvm::ModulePassManager passes;
    passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/true));
    passes.addPass(llvm::GlobalDCEPass());
    passes.run(module, modules);
}

// The driver would refuse the kernel when it is loaded, with a message of its own.
void check_complete(const llvm::Module& module) {
    for (const llvm::Function& function : module)
        if (function.isDeclaration() && !function.isIntrinsic() && !is_of_cuda_driver(function.getName()) &&
            !function.getName().starts_with("weft_native_"))  // of NVRTC
            throw UsageError("launch()", "a function that the kernel calls is the CPU's and not there on GPUs: '" +
                                             function.getName().str() + "'. help: launch it with device=\"cpu\"");
}

class NvptxBackend final : public Backend {
public:
    codegen::TargetInfo describe(const Target& target) const override {
        machine_for(target, 0);
        codegen::TargetInfo info{target};
        info.has_libclc = libdevice().is_libclc;
        return info;
    }

    // The limit for a thread's local memory, which is private and slow.
    std::optional<std::int64_t> stack_slots() const override { return 64; }

    void optimize(llvm::Module& module, const Target& target, int level) const override {
        llvm::TargetMachine& machine = machine_for(target, level);
        module.setTargetTriple(machine.getTargetTriple());
        module.setDataLayout(machine.createDataLayout());
        link_libdevice(module, target.processor);
        inline_library(module);
        check_complete(module);
        if (level > 0) run_passes(module, machine, level);
    }

    // With the NUL at the end that the driver expects.
    std::vector<std::byte> emit(llvm::Module& module, const Target& target, int level) const override {
        const std::string text = emit_text(module, target, level);
        std::vector<std::byte> bytes(text.size() + 1);
        std::memcpy(bytes.data(), text.c_str(), bytes.size());
        return bytes;
    }

    void check(const llvm::Module& module, const Binary& binary) const override {
        const std::string_view text(reinterpret_cast<const char*>(binary.code.data()), binary.code.size());
        check_local_memory(module, text, binary.kernels, binary.target.processor);
    }

    std::string emit_text(llvm::Module& module, const Target& target, int level) const override {
        return emit_file(module, machine_for(target, level), llvm::CodeGenFileType::AssemblyFile);
    }
};

}  // namespace

const Backend& nvptx_backend() {
    static const NvptxBackend backend;
    return backend;
}

}  // namespace weft::jit
