#include "jit/local_memory.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "support/error.h"

namespace weft::jit {
namespace {

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": the same for all of them.
constexpr std::int64_t kMostOfThread = 512 * 1024;

// "f" of ".visible .entry f(" and of ".func  (.param .b32 func_retval0) f("; empty for other lines.
std::string_view defined_function(std::string_view line) {
    if (!line.starts_with('.')) return {};
    const std::size_t kind = std::min(line.find(".entry "), line.find(".func "));
    const std::size_t end = line.rfind('(');
    if (kind == std::string_view::npos || end == std::string_view::npos || end < kind) return {};
    const std::size_t begin = line.find_last_of(" \t", end);
    return line.substr(begin + 1, end - begin - 1);
}

// The bytes of the variables of each function, by its name: ".local .align 8 .b8 __local_depot0[48];".
std::map<std::string, std::int64_t, std::less<>> own_bytes(std::string_view ptx) {
    std::map<std::string, std::int64_t, std::less<>> found;
    std::string_view function;
    while (!ptx.empty()) {
        const std::size_t end = std::min(ptx.find('\n'), ptx.size() - 1);
        const std::string_view line = ptx.substr(0, end);
        ptx.remove_prefix(end + 1);
        if (const std::string_view name = defined_function(line); !name.empty()) function = name;
        const std::size_t depot = line.find("__local_depot");
        if (depot == std::string_view::npos || line.find(".local ") == std::string_view::npos) continue;
        const std::size_t size = line.find('[', depot);
        std::int64_t bytes = 0;
        if (size != std::string_view::npos) std::from_chars(line.data() + size + 1, line.data() + line.size(), bytes);
        found[std::string(function)] = bytes;
    }
    return found;
}

class Calls {
public:
    Calls(const llvm::Module& module, std::string_view ptx) : module_(module), own_(own_bytes(ptx)) {}

    bool has_any() const { return !own_.empty(); }
    // Of the function and of the deepest calls in it.
    std::int64_t bytes_of(const std::string& name) {
        const auto [known, is_new] = deepest_.try_emplace(name, 0);
        if (!is_new) return known->second;  // 0 within a recursion, which no kernel has
        std::int64_t deepest = 0;
        if (const llvm::Function* const function = module_.getFunction(name))
            for (const llvm::Instruction& instruction : llvm::instructions(*function))
                if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction))
                    if (const llvm::Function* const callee = call->getCalledFunction())
                        deepest = std::max(deepest, bytes_of(callee->getName().str()));
        const auto own = own_.find(name);
        return deepest_[name] = deepest + (own == own_.end() ? 0 : own->second);
    }

private:
    const llvm::Module& module_;
    std::map<std::string, std::int64_t, std::less<>> own_, deepest_;
};

}  // namespace

void check_local_memory(const llvm::Module& module, std::string_view ptx, std::span<const KernelEntry> kernels,
                        const std::string& processor) {
    Calls calls(module, ptx);
    if (!calls.has_any()) return;
    for (const KernelEntry& kernel : kernels) {
        const std::int64_t bytes = calls.bytes_of(kernel.symbol);
        if (bytes <= kMostOfThread) continue;
        throw UsageError("launch()",
                         "kernel '" + kernel.name + "' needs " + std::to_string(bytes) +
                             " bytes of local memory for each thread on a GPU (" + processor + "), and there are " +
                             std::to_string(kMostOfThread) +
                             ". help: smaller vectors, matrices or arrays of its own; or launch it with "
                             "device=\"cpu\"",
                         ErrorCategory::value);
    }
}

}  // namespace weft::jit
