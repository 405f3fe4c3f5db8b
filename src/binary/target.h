// The target of machine code.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

struct Target {
    enum class Kind : std::uint8_t { cpu, cuda };
    Kind kind = Kind::cpu;
    std::string triple;     // as LLVM spells it
    std::string processor;  // "skylake-avx512", "sm_90"
    std::string features;   // of a CPU, with signs: "+avx2,-sse4a"; empty if the processor's name implies them

    bool operator==(const Target&) const = default;
};

}  // namespace weft
