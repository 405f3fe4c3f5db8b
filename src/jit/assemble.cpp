#include "jit/assemble.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <type_traits>

#include "jit/process.h"
#include "jit/toolkits.h"
#include "support/error.h"

namespace weft::jit {

namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "WARP_PTX_COMPILER";
constexpr const char* kHelp =
    "help: pip install nvidia-cuda-nvcc-cu12 (or nvidia-nvjitlink-cu12), install the CUDA toolkit, or name ptxas or "
    "libnvJitLink.so by the environment variable WARP_PTX_COMPILER; use_ptx=True needs none of them";

// The value of $WARP_PTX_COMPILER, or "".
std::string named_compiler() {
    const char* const named = std::getenv(kVariable);
    return named == nullptr ? "" : named;
}
bool is_library(const std::string& name) { return name.find("libnvJitLink.so") != std::string::npos; }

[[noreturn]] void refuse_named(const char* api, const std::string& why) {
    throw UsageError(api,
                     std::string("the environment variable ") + kVariable + " is '" + named_compiler() + "', " + why);
}

bool has_lines(std::string_view ptx) { return ptx.find("\n\t.loc\t") != std::string_view::npos; }

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto* const data = reinterpret_cast<const std::byte*>(text.data());
    return {data, data + text.size()};
}

// A compiler that failed, and its message.
struct Refusal {
    std::string who, why;
};

// ---- ptxas ----

std::vector<fs::path> programs(const std::vector<fs::path>& folders, const char* api) {
    if (const std::string named = named_compiler(); !named.empty()) {
        if (is_library(named)) return {};
        const fs::path found = find_program(named);
        if (found.empty()) refuse_named(api, "which is no program");
        return {found};
    }
    std::vector<fs::path> found = {find_program("ptxas")};
    for (const fs::path& folder : folders) found.push_back(find_program((folder / "bin/ptxas").string()));
    for (const fs::path& toolkit : cuda_toolkits()) found.push_back(find_program((toolkit / "bin/ptxas").string()));
    std::vector<fs::path> different;
    std::set<fs::path> seen;
    for (const fs::path& path : found)
        if (std::error_code error; !path.empty() && seen.insert(fs::canonical(path, error)).second)
            different.push_back(path);
    return different;
}

// Returns nothing, and adds to `refusals`, if ptxas fails.
std::vector<std::byte> run_ptxas(const fs::path& program, std::string_view ptx, const std::string& processor,
                                 const char* api, std::vector<Refusal>& refusals) {
    const TemporaryFolder folder;
    if (!folder.problem.empty()) throw UsageError(api, folder.problem + ". help: " + kTemporaryFolderHelp);
    const fs::path source = folder.path / "kernels.ptx", result = folder.path / "kernels.cubin";
    const fs::path output = folder.path / "output.txt";
    std::ofstream(source, std::ios::binary) << ptx;
    std::vector<std::string> command = {program.string(), "--gpu-name=" + processor};
    if (has_lines(ptx)) command.emplace_back("--generate-line-info");
    command.insert(command.end(), {"-o", result.string(), source.string()});
    const std::string ending = run_program(command, output);
    const std::string made = ending.empty() ? read_text(result) : "";
    if (!made.empty()) return bytes_of(made);
    std::string said = read_text(output).substr(0, 2000);
    while (!said.empty() && said.back() == '\n') said.pop_back();
    refusals.push_back({program.string(), said.empty() ? (ending.empty() ? "it wrote nothing" : ending) : said});
    return {};
}

// ---- nvJitLink ----

using nvJitLinkHandle = struct NvJitLink*;
using nvJitLinkInputType = int;
constexpr nvJitLinkInputType kInputIsPtx = 2;

struct Library {
    std::string name;
    int version = 0;  // in the library's name: 12 or 13
#define WEFT_NVJITLINK(function, parameters) int(*function) parameters = nullptr;
#include "jit/nvjitlink.def"
#undef WEFT_NVJITLINK
};

// Libraries are never closed. Empty if none has that name, or functions are missing.
std::optional<Library> open_library(const std::string& name, int version) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return {};
    Library library{name, version};
    bool is_whole = true;
    const auto find = [&](auto& function, const std::string& symbol) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
            dlsym(handle, ("__" + symbol + "_" + std::to_string(version) + "_0").c_str()));
        is_whole &= function != nullptr;
    };
#define WEFT_NVJITLINK(function, parameters) find(library.function, #function);
#include "jit/nvjitlink.def"
#undef WEFT_NVJITLINK
    if (!is_whole) return {};
    return library;
}

std::optional<Library> find_library(const std::vector<fs::path>& folders, const char* api) {
    constexpr int kVersions[] = {13, 12};
    if (const std::string named = named_compiler(); !named.empty()) {
        if (!is_library(named)) return {};
        for (const int version : kVersions)
            if (std::optional<Library> found = open_library(named, version)) return found;
        refuse_named(api, "which is no nvJitLink of CUDA 12 or 13");
    }
    for (const int version : kVersions) {
        const std::string file = "libnvJitLink.so." + std::to_string(version);
        std::vector<std::string> names;
        for (const fs::path& folder : folders) names.push_back((folder / "lib" / file).string());
        for (const fs::path& toolkit : cuda_toolkits()) names.push_back((toolkit / "lib64" / file).string());
        names.push_back(file);
        for (const std::string& name : names)
            if (std::optional<Library> found = open_library(name, version)) return found;
    }
    return {};
}

std::vector<std::byte> run_library(const Library& library, std::string_view ptx, const std::string& processor,
                                   std::vector<Refusal>& refusals) {
    const std::string text(ptx), architecture = "-arch=" + processor;  // c_str() ends in a NUL
    const char* options[] = {architecture.c_str(), "-lineinfo"};
    nvJitLinkHandle handle = nullptr;
    const auto refuse = [&](const std::string& call, int result) {
        std::size_t size = 0;
        std::string said;
        if (handle && library.nvJitLinkGetErrorLogSize(handle, &size) == 0 && size > 0) {
            said.resize(size);
            if (library.nvJitLinkGetErrorLog(handle, said.data()) != 0) said.clear();
            while (!said.empty() && (said.back() == '\0' || said.back() == '\n')) said.pop_back();
        }
        refusals.push_back(
            {library.name, call + " gives " + std::to_string(result) + (said.empty() ? "" : ": " + said)});
        if (handle) library.nvJitLinkDestroy(&handle);
        return std::vector<std::byte>();
    };
    int result = library.nvJitLinkCreate(&handle, has_lines(ptx) ? 2 : 1, options);
    if (result != 0) return refuse("nvJitLinkCreate", result);
    result = library.nvJitLinkAddData(handle, kInputIsPtx, text.c_str(), text.size() + 1, "kernels.ptx");
    if (result != 0) return refuse("nvJitLinkAddData", result);
    result = library.nvJitLinkComplete(handle);
    if (result != 0) return refuse("nvJitLinkComplete", result);
    std::size_t size = 0;
    result = library.nvJitLinkGetLinkedCubinSize(handle, &size);
    if (result != 0) return refuse("nvJitLinkGetLinkedCubinSize", result);
    std::vector<std::byte> made(size);
    result = library.nvJitLinkGetLinkedCubin(handle, made.data());
    if (result != 0) return refuse("nvJitLinkGetLinkedCubin", result);
    library.nvJitLinkDestroy(&handle);
    return made;
}

// Looked for once.
const std::optional<Library>& library_of_process() {
    static const std::optional<Library> library = []() -> std::optional<Library> {
        if (const std::string named = named_compiler(); !named.empty() && !is_library(named)) return {};
        try {
            return find_library(nvidia_packages_beside({"cu13", "cu12", "nvjitlink"}), "launch()");
        } catch (const UsageError&) {  // compile_aot_module() reports it; here the driver compiles
            return {};
        }
    }();
    return library;
}

}  // namespace

bool names_library() { return is_library(named_compiler()); }

std::vector<std::byte> assemble_in_library(std::string_view ptx, const std::string& processor) {
    const std::optional<Library>& library = library_of_process();
    std::vector<Refusal> refusals;
    return library ? run_library(*library, ptx, processor, refusals) : std::vector<std::byte>();
}

std::vector<std::byte> assemble(std::string_view ptx, const std::string& processor,
                                const std::vector<fs::path>& folders, const char* api) {
    std::vector<Refusal> refusals;
    for (const fs::path& program : programs(folders, api))
        if (std::vector<std::byte> made = run_ptxas(program, ptx, processor, api, refusals); !made.empty()) return made;
    if (const std::optional<Library> library = find_library(folders, api))
        if (std::vector<std::byte> made = run_library(*library, ptx, processor, refusals); !made.empty()) return made;
    if (refusals.empty())
        throw UsageError(api, std::string("machine code for GPUs is made by NVIDIA's compiler, and there is none here: "
                                          "neither the program ptxas nor the library nvJitLink. ") +
                                  kHelp);
    std::string text = "NVIDIA's compiler does not take the code for " + processor + ": ";
    for (std::size_t i = 0; i < refusals.size(); ++i)
        text += (i == 0 ? "" : "; ") + refusals[i].who + " says: " + refusals[i].why;
    throw UsageError(api, text + ". " + kHelp);
}

}  // namespace weft::jit
