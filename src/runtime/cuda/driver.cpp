#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "support/error.h"

namespace weft::runtime::cuda {

namespace {

constexpr char kVariable[] = "WARP_CUDA_DRIVER";

struct DriverLookup {
    std::unique_ptr<Driver> driver;
    std::string problem;
};

// The folder of the library or program that contains this code.
std::filesystem::path own_folder() {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
    std::error_code error;
    const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
    return error ? std::filesystem::path(info.dli_fname).parent_path() : file.parent_path();
}

std::string library_name(const std::string& chosen) {
    if (chosen.empty()) return "libcuda.so.1";
    if (chosen == "emulated") return (own_folder() / "weft-emulated-cuda.so").string();
    return chosen;
}

std::string text_of(const Driver& driver, CUresult result) {
    const char *name = nullptr, *text = nullptr;
    driver.cuGetErrorName(result, &name);
    driver.cuGetErrorString(result, &text);
    return std::string(name ? name : "an error of the driver") + " (" + std::to_string(result) + ")" +
           (text ? std::string(": ") + text : "");
}

// The emulated device's description of an error; empty if there is none.
std::string fault_text(const Driver& driver) {
    const std::string fault = driver.last_fault ? driver.last_fault() : "";
    return fault.empty() ? fault : "; the emulated device says: " + fault;
}

// Looks up every function; returns the name of one that is missing, or "".
std::string find_functions(void* library, Driver& driver) {
    std::string missing;
    const auto find = [&](auto& function, const char* name, bool is_recent) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        if (function == nullptr && !is_recent && missing.empty()) missing = name;
    };
#define WEFT_DRIVER(name, parameters) find(driver.name, #name, false);
#define WEFT_DRIVER_RECENT(name, parameters) find(driver.name, #name, true);
#include "runtime/cuda/driver.def"
#undef WEFT_DRIVER
#undef WEFT_DRIVER_RECENT
    driver.last_fault = reinterpret_cast<const char* (*)()>(dlsym(library, "weftEmulatedLastFault"));
    driver.note_asked = reinterpret_cast<void (*)(CUdeviceptr, std::size_t)>(dlsym(library, "weftEmulatedAsked"));
    return missing;
}

// Whether an ELF file of 64 bits is shorter than its headers say: loading it would end the process.
bool is_cut_off(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header{};
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error || header.e_phentsize != sizeof(Elf64_Phdr)) return false;
    for (int i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr part{};
        file.seekg(static_cast<std::streamoff>(header.e_phoff + static_cast<std::size_t>(i) * sizeof part));
        if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) return true;
        if (part.p_type == PT_LOAD && part.p_offset + part.p_filesz > size) return true;
    }
    return false;
}

DriverLookup find() {
    const char* const variable = std::getenv(kVariable);
    const std::string chosen = variable ? variable : "";
    if (chosen == "none") return {nullptr, std::string(kVariable) + " is 'none'"};
    if (!chosen.empty() && chosen != "emulated" && chosen.find('/') == std::string::npos)
        return {nullptr, std::string(kVariable) + " is '" + chosen +
                             "', expected 'emulated', 'none' or the path of a driver's library"};
    const std::string name = library_name(chosen);
    if (name.find('/') != std::string::npos && is_cut_off(name))
        return {nullptr, "no CUDA driver was found: " + name + ": a part of the file is missing"};
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return {nullptr, std::string("no CUDA driver was found: ") + dlerror()};
    auto driver = std::make_unique<Driver>();
    driver->process = getpid();
    if (const std::string missing = find_functions(library, *driver); !missing.empty())
        return {nullptr, "the CUDA driver '" + name + "' has no function " + missing + ": it is too old or damaged"};
    CUresult result = driver->cuInit(0);
    if (result == kSuccess) result = driver->cuDriverGetVersion(&driver->version);
    if (result == kSuccess) result = driver->cuDeviceGetCount(&driver->devices);
    if (result == kNoDevice || (result == kSuccess && driver->devices == 0))
        return {nullptr, "the CUDA driver '" + name + "' finds no GPU"};
    if (result != kSuccess)
        return {nullptr,
                "the CUDA driver '" + name + "' does not start: " + text_of(*driver, result) + fault_text(*driver)};
    return {std::move(driver), ""};
}

const DriverLookup& found() {
    static const DriverLookup* const answer = new DriverLookup(find());
    return *answer;
}

}  // namespace

const Driver* find_driver() { return found().driver.get(); }
const std::string& driver_problem() { return found().problem; }

const Driver& driver() {
    const Driver* const there = find_driver();
    WEFT_CHECK(there != nullptr, "a CUDA device is used, and there is no driver");
    return *there;
}

std::string error_text(CUresult result) { return text_of(driver(), result); }

void check(CUresult result, const char* call, const std::string& device) {
    if (result == kSuccess) return;
    if (getpid() != driver().process) {
        throw UsageError(std::string(call) + "()",
                         "'" + device +
                             "' was used before this process was forked, and CUDA works in the process before "
                             "only. help: multiprocessing.set_start_method('spawn')");
    }
    throw UsageError(std::string(call) + "()", error_text(result) + ", on '" + device + "'" + fault_text(driver()),
                     result == kOutOfMemory ? ErrorCategory::memory : ErrorCategory::runtime);
}

}  // namespace weft::runtime::cuda
