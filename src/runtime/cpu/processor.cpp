#include "runtime/cpu/processor.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace weft::runtime {

std::vector<std::string> missing_features(std::string_view triple, const std::vector<std::string>& features) {
    const llvm::Triple code(triple), host(llvm::sys::getProcessTriple());
    if (code.getArch() != host.getArch() || code.getOS() != host.getOS()) return {std::string(triple)};
    const llvm::StringMap<bool> here = llvm::sys::getHostCPUFeatures();
    std::vector<std::string> missing;
    for (const std::string& feature : features) {
        const auto found = here.find(feature);
        if (found == here.end() || !found->second) missing.push_back(feature);
    }
    return missing;
}

}  // namespace weft::runtime
