#include <llvm/TargetParser/X86TargetParser.h>

#include "codegen/cpu/emitter.h"

namespace weft::codegen {

CpuMachine::CpuMachine(const TargetInfo& target) {
    vector_bits = target.vector_bits;
    fast_gathers = target.fast_gathers, fast_scatters = target.fast_scatters;
    loads_rows = target.loads_rows;
    fma = half_conversions = mask_registers = false;
    std::string features = "," + target.features + ",";
    if (target.features.empty() && !target.processor.empty()) {  // the features that the processor's name implies
        llvm::SmallVector<llvm::StringRef, 64> implied;
        if (target.triple.rfind("x86_64", 0) == 0) llvm::X86::getFeaturesForCPU(target.processor, implied);
        for (llvm::StringRef feature : implied) features += "+" + feature.str() + ",";
    }
    auto has = [&](const char* feature) {
        return features.find(std::string(",+") + feature + ",") != std::string::npos;
    };
    bool x86 = target.triple.rfind("x86_64", 0) == 0;
    if (!x86) {
        fma = half_conversions = true;  // part of every AArch64
        math_isa = "advsimd";
        return;
    }
    keeps_registers = returns_pairs_in_memory = true;
    wide_atomics = has("cx16");
    fma = has("fma");
    half_conversions = has("f16c");
    mask_registers = has("avx512vl") && has("avx512bw") && has("avx512dq");
    // The feature list of a processor lacks the features that its listed ones imply.
    bool avx512 = has("avx512f") || has("avx512vl"), sse4 = has("sse4.1") || has("sse4.2") || has("avx");
    if (avx512 && vector_bits >= 512) {
        math_isa = "avx512f";
        math_bits = 512;
    } else if (has("avx2") && fma) {
        math_isa = "avx2";
        math_bits = 256;
    } else {
        math_isa = sse4 ? "sse4" : "sse2";
    }
}

transform::VectorUnit vector_unit(const TargetInfo& target) {
    const CpuMachine machine(target);
    return {machine.vector_bits, machine.fast_gathers, machine.mask_registers};
}

bool has_quick_lanes(const TargetInfo& target) {
    const transform::VectorUnit unit = vector_unit(target);
    return unit.fast_gathers && unit.mask_registers;
}

}  // namespace weft::codegen
