// Loads object files. This is JITLink used directly. An object file becomes a graph, and its undefined symbols are
// looked up in a fixed table (symbols.h). The memory manager maps the segments, and the addresses of the kernels are
// read. An ORC session is not needed: nothing here is lazy, concurrent or shared between objects. A session would take
// longer to start than a kernel takes to link, and it reports errors by printing them.
#include "runtime/cpu/loader.h"

#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

#include "llvm/ADT/StringExtras.h"
#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/SymbolStringPool.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "runtime/cpu/code_listeners.h"
#include "runtime/cpu/symbols.h"
#include "support/error.h"

namespace weft::runtime {

namespace {

using llvm::jitlink::JITLinkMemoryManager;

// Shared by all links of the process. Never destroyed: executables may be the last objects that a process releases.
struct LinkerState {
    llvm::jitlink::InProcessMemoryManager memory{llvm::sys::Process::getPageSizeEstimate()};
    std::shared_ptr<llvm::orc::SymbolStringPool> names = std::make_shared<llvm::orc::SymbolStringPool>();
};

LinkerState& linker() {
    static LinkerState* const state = new LinkerState;
    return *state;
}

// The result of a link: addresses and memory, or the error.
struct LinkResult {
    std::unordered_map<std::string, void*> symbols;
    CodeRange code;
    std::map<std::string, std::uint64_t> sections;  // addresses, for debuggers and profilers
    JITLinkMemoryManager::FinalizedAlloc memory;
    std::string error;
    std::string missing;  // undefined symbols
};

using FindSymbol = std::function<void*(const std::string& name)>;

// The callbacks of JITLink during one link, which runs to its end inside link(), on the calling thread.
class LinkContext : public llvm::jitlink::JITLinkContext {
public:
    LinkContext(LinkResult& result, const FindSymbol& find) : JITLinkContext(nullptr), result_(result), find_(find) {}

    JITLinkMemoryManager& getMemoryManager() override { return linker().memory; }

    void notifyFailed(llvm::Error error) override { result_.error = llvm::toString(std::move(error)); }

    void lookup(const LookupMap& wanted,
                std::unique_ptr<llvm::jitlink::JITLinkAsyncLookupContinuation> continuation) override {
        llvm::jitlink::AsyncLookupResult found;
        std::vector<std::string> missing;
        for (const auto& [name, flags] : wanted) {
            const std::string text = (*name).str();
            void* const address = find_(text);
            if (address == nullptr && flags == llvm::jitlink::SymbolLookupFlags::RequiredSymbol)
                missing.push_back(text);
            found[name] = {llvm::orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
        }
        if (missing.empty()) {
            continuation->run(std::move(found));
        } else {
            std::sort(missing.begin(), missing.end());
            result_.missing = llvm::join(missing, ", ");
            continuation->run(llvm::createStringError("the code uses " + result_.missing + ", which is not there"));
        }
    }

    llvm::Error notifyResolved(llvm::jitlink::LinkGraph& graph) override {
        for (const llvm::jitlink::Symbol* symbol : graph.defined_symbols())
            if (symbol->hasName() && symbol->getScope() != llvm::jitlink::Scope::Local)
                result_.symbols.emplace((*symbol->getName()).str(), symbol->getAddress().toPtr<void*>());
        result_.code = code_of(graph);
        return llvm::Error::success();
    }

    void notifyFinalized(JITLinkMemoryManager::FinalizedAlloc memory) override { result_.memory = std::move(memory); }

    llvm::Error modifyPassConfig(llvm::jitlink::LinkGraph& graph, llvm::jitlink::PassConfiguration& passes) override {
        if (perf_format() == PerfFormat::none && !graph.findSectionByName(".debug_line")) return llvm::Error::success();
        passes.PostAllocationPasses.push_back([this](llvm::jitlink::LinkGraph& allocated) {
            for (const llvm::jitlink::Section& section : allocated.sections())
                if (section.getMemLifetime() != llvm::orc::MemLifetime::NoAlloc && !section.empty())
                    result_.sections.emplace(section.getName().str(),
                                             llvm::jitlink::SectionRange(section).getStart().getValue());
            return llvm::Error::success();
        });
        return llvm::Error::success();
    }

    static bool has(llvm::orc::MemProt protection, llvm::orc::MemProt bit) {
        return (static_cast<unsigned>(protection) & static_cast<unsigned>(bit)) != 0;
    }

    // The range from the first to the last instruction.
    static CodeRange code_of(llvm::jitlink::LinkGraph& graph) {
        CodeRange code;
        for (const llvm::jitlink::Section& section : graph.sections()) {
            if (!has(section.getMemProt(), llvm::orc::MemProt::Exec) || section.empty()) continue;
            const llvm::jitlink::SectionRange range(section);
            const void *begin = range.getStart().toPtr<void*>(), *end = range.getEnd().toPtr<void*>();
            if (code.begin == nullptr || begin < code.begin) code.begin = begin;
            if (end > code.end) code.end = end;
        }
        return code;
    }

    // The default passes remove code that is not live; all code of a kernel's object is needed.
    llvm::jitlink::LinkGraphPassFunction getMarkLivePass(const llvm::Triple&) const override {
        return llvm::jitlink::markAllSymbolsLive;
    }

private:
    LinkResult& result_;
    const FindSymbol& find_;
};

LinkResult link_object(const std::vector<std::byte>& bytes, const std::string& name, const FindSymbol& find) {
    const llvm::MemoryBufferRef object({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
    LinkResult result;
    auto graph = llvm::jitlink::createLinkGraphFromObject(object, linker().names);
    if (graph) {
        llvm::jitlink::link(std::move(*graph), std::make_unique<LinkContext>(result, find));
    } else {
        result.error = llvm::toString(graph.takeError());
    }
    return result;
}

}  // namespace

struct CpuExecutable::Linked {
    std::vector<JITLinkMemoryManager::FinalizedAlloc> memory;  // of each object
    std::vector<std::shared_ptr<GdbEntry>> announced;
    std::deque<CpuKernel> kernels;

    void announce_object(const std::vector<std::byte>& object, LinkResult& result,
                         std::function<std::string(const std::string&)> name_shown) {
        if (!result.sections.empty())
            announced.push_back(announce({object, std::move(result.sections), std::move(name_shown)}));
    }

    ~Linked() {
        announced.clear();  // before the code is unmapped
        // Unmapping fails only if the memory was never mapped, and a destructor cannot report it.
        for (auto& part : memory)
            if (part) llvm::consumeError(linker().memory.deallocate(std::move(part)));
    }
};

CpuExecutable::CpuExecutable(Binary given) : Executable(std::move(given)), linked_(std::make_unique<Linked>()) {
    const Binary& binary = this->binary();
    WEFT_CHECK(binary.target.kind == Target::Kind::cpu,
               "an executable for the CPU was asked for, the binary is for " + binary.target.triple);
    std::unordered_map<std::string, void*> natives;
    for (const std::vector<std::byte>& object : binary.natives) link_native(object, natives);
    const FindSymbol find = [&](const std::string& name) {
        const auto native = natives.find(name);
        return native != natives.end() ? native->second : find_symbol(name);
    };
    const std::string name = binary.kernels.empty() ? "module" : binary.kernels.front().name;
    LinkResult result = link_object(binary.code, name, find);
    linked_->memory.push_back(std::move(result.memory));
    if (!result.error.empty()) throw InternalError("cannot link the compiled kernel: " + result.error);
    linked_->announce_object(binary.code, result, [&](const std::string& symbol) {
        for (const KernelEntry& kernel : binary.kernels)
            if (kernel.symbol == symbol) return kernel.name;
        return symbol;
    });
    for (const KernelEntry& kernel : binary.kernels) {
        const auto found = result.symbols.find(kernel.symbol);
        if (found == result.symbols.end())
            throw InternalError("the object of kernel '" + kernel.name + "' does not define '" + kernel.symbol + "'");
        linked_->kernels.emplace_back(kernel, reinterpret_cast<KernelEntryPoint>(found->second), result.code);
    }
}

// Links the next function in C++, which may use all symbols of the process: the C library and other global ones.
void CpuExecutable::link_native(const std::vector<std::byte>& object, std::unordered_map<std::string, void*>& natives) {
    LinkResult result = link_object(object, "C++ function", find_symbol_of_process);
    linked_->memory.push_back(std::move(result.memory));
    const std::string kernel = binary().kernels.empty() ? "" : " of kernel '" + binary().kernels.front().name + "'";
    if (!result.missing.empty())
        throw UsageError("func_native()", "the C++" + kernel + " uses " + result.missing +
                                              ", which this process does not have. help: load the library that has it "
                                              "before: in Python with ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL), in a "
                                              "C++ program by linking with it (symbols of the program itself must be "
                                              "exported: -rdynamic)");
    if (!result.error.empty())
        throw UsageError("func_native()", "the C++" + kernel + " cannot be linked: " + result.error);
    const auto found = result.symbols.find(kNativeSymbol);
    if (found == result.symbols.end())
        throw InternalError("the object of a function in C++ does not define '" + std::string(kNativeSymbol) + "'");
    linked_->announce_object(object, result, [](const std::string& symbol) { return symbol; });
    natives.emplace(native_symbol(natives.size()), found->second);
}

CpuExecutable::~CpuExecutable() {
    // Launches may still wait in a deferred stream.
    for (Device* device : cpu_devices()) device->synchronize();
}

const CpuKernel& CpuExecutable::kernel(std::string_view name) const {
    for (const CpuKernel& kernel : linked_->kernels)
        if (kernel.description().name == name) return kernel;
    throw InternalError("there is no kernel '" + std::string(name) + "' in this executable");
}

}  // namespace weft::runtime
