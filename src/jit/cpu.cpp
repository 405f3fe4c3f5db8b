// CPUs: x86-64 and AArch64, as LLVM describes them.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "jit/backend.h"
#include "jit/jit.h"
#include "jit/object.h"
#include "jit/optimize.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "support/error.h"

namespace weft::jit {

namespace {

// Registers the processor family with LLVM. Thread-safe, and may be called repeatedly.
void initialize() {
    static std::once_flag once;
    std::call_once(once, [] {
        llvm::InitializeNativeTarget();
        llvm::InitializeNativeTargetAsmPrinter();
        llvm::InitializeNativeTargetAsmParser();  // checks inline assembly; codegen has none, LLVM still asks for it
        // Limits above which LLVM switches to algorithms that are not quadratic in the size of a kernel. They are only
        // reachable as options.
        const auto set_limit = [&](const char* option, const char* limit) {
            const auto& options = llvm::cl::getRegisteredOptions();
            const auto found = options.find(option);
            if (found != options.end()) found->second->addOccurrence(0, option, limit);
        };
        // The schedulers compare each access of a block with all others, up to this number of accesses. LLVM's own
        // limit of 1000 makes that the longest part of compiling a kernel with hundreds of arrays.
        set_limit("dag-maps-huge-region", "200");
        // In functions of up to this number of blocks, CodeGenPrepare restarts at the first block after each change to
        // the control flow. LLVM's own limit of 10000 makes that the longest part of a kernel with hundreds of loops.
        set_limit("cgpp-huge-func", "64");
        // For each value, the register allocator searches the region in which it may stay in its register, block by
        // block. LLVM's own limit of 10000 blocks made that the longest part of a kernel with thousands.
        set_limit("grow-region-complexity-budget", "400");
        // Constants that many blocks copy are rematerialised in each. The coalescer updates their live ranges after
        // each of the first 100; above this limit it does so once for all.
        set_limit("late-remat-update-threshold", "3");
    });
}

const llvm::Target& llvm_target(const llvm::Triple& triple) {
    initialize();
    std::string error;
    const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple, error);
    if (target == nullptr) throw InternalError("LLVM has no code generator for " + triple.str() + ": " + error);
    return *target;
}

// The widest SIMD register worth using. 512 bits need all parts of AVX-512 that wide code uses (masks on bytes and
// words, conversions of 64-bit integers), which every server processor since Skylake has.
int vector_bits(const llvm::Triple& triple, const llvm::MCSubtargetInfo& processor) {
    if (!triple.isX86()) return 128;  // AArch64: NEON
    const auto has = [&](const char* feature) { return processor.checkFeatures(std::string("+") + feature); };
    if (has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq")) return 512;
    if (has("avx2")) return 256;
    return 128;
}

// LLVM's description of the processor. Throws UsageError if LLVM does not know it.
std::unique_ptr<llvm::MCSubtargetInfo> processor_of(const Target& target) {
    const llvm::Triple triple(target.triple);
    std::unique_ptr<llvm::MCSubtargetInfo> processor(
        llvm_target(triple).createMCSubtargetInfo(triple, target.processor, target.features));
    if (processor == nullptr || !processor->isCPUStringValid(target.processor))
        throw UsageError("WEFT_CPU",
                         "'" + target.processor + "' is not a processor that LLVM knows for " + target.triple +
                             "; examples are x86-64, x86-64-v3 and skylake-avx512",
                         ErrorCategory::value);
    return processor;
}

codegen::TargetInfo info_of(const Target& target) {
    const std::unique_ptr<llvm::MCSubtargetInfo> processor = processor_of(target);
    const llvm::Triple triple(target.triple);
    codegen::TargetInfo info{target};
    info.vector_bits = vector_bits(triple, *processor);
    const auto has = [&](const char* feature) { return processor->checkFeatures(std::string("+") + feature); };
    if (triple.isX86()) {
        // The conditions under which LLVM uses the instructions.
        const bool wide = has("avx512f") && has("avx512vl");
        info.fast_gathers = (wide || (has("avx2") && has("fast-gather"))) && !has("prefer-no-gather");
        // Measured on Zen 4 only, on which a loop over neighbours takes 0.75 of the time.
        info.loads_rows = target.processor.starts_with("znver");
        info.fast_scatters = wide && !has("prefer-no-scatter");
    }
    return info;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, int level) {
    constexpr llvm::CodeGenOptLevel kLevels[] = {llvm::CodeGenOptLevel::None, llvm::CodeGenOptLevel::Less,
                                                 llvm::CodeGenOptLevel::Default, llvm::CodeGenOptLevel::Aggressive};
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // codegen marks the places, with llvm.fmuladd and `contract`
    options.EnableFastISel = level == 0;
    // Position-independent: calls may then go through stubs, by which code reaches libraries further away than a 32-bit
    // displacement.
    const llvm::Triple triple(target.triple);
    std::unique_ptr<llvm::TargetMachine> machine(
        llvm_target(triple).createTargetMachine(triple, target.processor, target.features, options, llvm::Reloc::PIC_,
                                                llvm::CodeModel::Small, kLevels[level], /*JIT=*/true));
    if (machine == nullptr) throw InternalError("LLVM cannot make a code generator for " + target.triple);
    return machine;
}

// Per thread, since making a machine takes as long as compiling a small kernel.
struct CachedTarget {
    codegen::TargetInfo info;
    std::array<std::unique_ptr<llvm::TargetMachine>, 4> machines;  // by level

    llvm::TargetMachine& machine(int optimization_level) {
        const int level = std::clamp(optimization_level, 0, 3);
        std::unique_ptr<llvm::TargetMachine>& machine = machines[static_cast<std::size_t>(level)];
        if (machine == nullptr) machine = make_machine(info, level);
        return *machine;
    }
};

CachedTarget& known(const Target& target) {
    static thread_local std::deque<CachedTarget> all;
    for (CachedTarget& one : all)
        if (static_cast<const Target&>(one.info) == target) return one;
    all.push_back({info_of(target), {}});
    return all.back();
}

class CpuBackend final : public Backend {
public:
    codegen::TargetInfo describe(const Target& target) const override { return known(target).info; }

    void optimize(llvm::Module& module, const Target& target, int level) const override {
        llvm::TargetMachine& machine = known(target).machine(level);
        module.setTargetTriple(machine.getTargetTriple());
        module.setDataLayout(machine.createDataLayout());
        // Without these attributes, LLVM splits 512-bit operations on processors whose tuning prefers 256 bits. codegen
        // has chosen the width already (TargetInfo::vector_bits).
        const int bits = known(target).info.vector_bits;
        for (llvm::Function& function : module) {
            if (function.isDeclaration()) continue;
            function.addFnAttr(llvm::Attribute::NoUnwind);
            if (bits < 512) continue;
            function.addFnAttr("prefer-vector-width", std::to_string(bits));
            function.addFnAttr("min-legal-vector-width", std::to_string(bits));
        }
        if (level > 0) run_passes(module, machine, level);
    }

    std::vector<std::byte> emit(llvm::Module& module, const Target& target, int level) const override {
        const std::string file = emit_file(module, known(target).machine(level), llvm::CodeGenFileType::ObjectFile);
        std::vector<std::byte> bytes(file.size());
        if (!bytes.empty()) std::memcpy(bytes.data(), file.data(), bytes.size());
        return bytes;
    }

    std::string emit_text(llvm::Module& module, const Target& target, int level) const override {
        return emit_file(module, known(target).machine(level), llvm::CodeGenFileType::AssemblyFile);
    }
};

Target find_host() {
    Target target;
    target.triple = llvm::sys::getProcessTriple();
    // $WEFT_CPU names an older processor to compile for, by LLVM's name ("x86-64", "x86-64-v3"): for tests, and for
    // caches shared between unlike machines.
    if (const char* const wanted = std::getenv("WEFT_CPU"); wanted != nullptr && *wanted != '\0') {
        target.processor = wanted;
    } else {
        target.processor = llvm::sys::getHostCPUName().str();
        // Sorted, so that every process writes the same text and finds the same cache entries.
        std::map<std::string, bool> features;
        for (const auto& feature : llvm::sys::getHostCPUFeatures())
            features.emplace(feature.first().str(), feature.second);
        for (const auto& [name, is_there] : features) {
            if (!target.features.empty()) target.features += ',';
            target.features += (is_there ? '+' : '-') + name;
        }
    }
    processor_of(target);
    return target;
}

}  // namespace

const Target& host_target() {
    static const Target target = find_host();
    return target;
}

const Backend& cpu_backend() {
    static const CpuBackend backend;
    return backend;
}

}  // namespace weft::jit
