#include "jit/features.h"

#include <set>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace weft::jit {

std::vector<std::string> required_features(const Target& target) {
    const bool is_x86 = llvm::Triple(target.triple).isX86();
    const auto of_processor = [](llvm::StringRef processor) {
        llvm::SmallVector<llvm::StringRef, 64> names;
        llvm::X86::getFeaturesForCPU(processor, names);
        return std::set<std::string>(names.begin(), names.end());
    };
    std::set<std::string> names;
    if (target.features.empty()) {  // $WEFT_CPU
        if (is_x86) names = of_processor(target.processor);
    } else {
        llvm::SmallVector<llvm::StringRef, 64> parts;
        llvm::StringRef(target.features).split(parts, ',');
        for (const llvm::StringRef part : parts)
            if (part.starts_with("+")) names.insert(part.drop_front().str());
    }
    if (is_x86)
        for (const std::string& name : of_processor("x86-64")) names.erase(name);
    return {names.begin(), names.end()};
}

}  // namespace weft::jit
