// The driver compiles PTX in two ways: inside of cuModuleLoadDataEx(), which does not return the machine code, and as a
// link (cuLink…), which does. The link is used if there is a store. A failure there only means that nothing is stored:
// the PTX is then loaded in the first way, which reports its errors.
//
// A driver compiles one module at a time. While it does, another thread compiles its own in NVIDIA's library
// (runtime/ptx_compiler.h); if that fails in any way, it waits for the driver.
#include "runtime/cuda/module.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/cuda/relaxed_capture.h"
#include "runtime/driver_image_cache.h"
#include "runtime/ptx_compiler.h"
#include "support/error.h"

namespace weft::runtime {

using namespace cuda;

namespace {

// Asks for line tables, for profilers and cuda-gdb, if the text has any.
bool has_lines(const char* ptx) { return std::strstr(ptx, "\n\t.loc\t") != nullptr; }

// Options of the driver's compiler, and its log of errors.
class JitOptions {
public:
    explicit JitOptions(bool with_lines) {
        add(kErrorLogBuffer, log_);
        add(kErrorLogBufferBytes, reinterpret_cast<void*>(sizeof log_));
        if (with_lines) add(kGenerateLines, reinterpret_cast<void*>(1));
    }
    JitOptions(const JitOptions&) = delete;
    JitOptions& operator=(const JitOptions&) = delete;

    unsigned count() const { return count_; }
    CUjit_option* options() { return options_; }
    void** values() { return values_; }
    std::string said() const {
        std::string text(log_, ::strnlen(log_, sizeof log_));
        while (!text.empty() && text.back() == '\n') text.pop_back();
        return text;
    }

private:
    void add(CUjit_option option, void* value) {
        options_[count_] = option;
        values_[count_++] = value;
    }
    char log_[4096] = "";
    CUjit_option options_[3];
    void* values_[3];
    unsigned count_ = 0;
};

struct Attempt {
    CUmodule handle = nullptr;
    CUresult result = kSuccess;
    std::string said;
};

Attempt load(const void* code, bool with_lines) {
    JitOptions options(with_lines);
    Attempt attempt;
    attempt.result =
        driver().cuModuleLoadDataEx(&attempt.handle, code, options.count(), options.options(), options.values());
    attempt.said = options.said();
    return attempt;
}

// The driver's machine code for a text; empty on failure.
std::vector<std::byte> link(const char* ptx, bool with_lines) {
    const Driver& driver = cuda::driver();
    JitOptions options(with_lines);
    CUlinkState state = nullptr;
    if (driver.cuLinkCreate_v2(options.count(), options.options(), options.values(), &state) != kSuccess) return {};
    void* image = nullptr;
    std::size_t size = 0;
    CUresult result = driver.cuLinkAddData_v2(state, kInputIsPtx, const_cast<char*>(ptx), std::strlen(ptx) + 1,
                                              "kernels", 0, nullptr, nullptr);
    if (result == kSuccess) result = driver.cuLinkComplete(state, &image, &size);
    std::vector<std::byte> made;
    if (result == kSuccess)
        made.assign(static_cast<const std::byte*>(image), static_cast<const std::byte*>(image) + size);
    destroy_quietly(driver.cuLinkDestroy, state);  // frees the image, which has been copied
    return made;
}

bool can_link() {
    const Driver& driver = cuda::driver();
    return driver.cuLinkCreate_v2 && driver.cuLinkAddData_v2 && driver.cuLinkComplete && driver.cuLinkDestroy;
}

// The release of the driver, as each may have another compiler; "" if the system does not tell.
const std::string& release_of_driver() {
    static const std::string release = [] {
        std::ifstream file("/sys/module/nvidia/version");
        std::string text;
        std::getline(file, text);
        return text;
    }();
    return release;
}

// The key of a stored image: everything that the driver's machine code for a text depends on.
std::string made_of(const char* ptx, bool with_lines, CudaContext& device) {
    const Driver& driver = cuda::driver();
    return "driver " + std::to_string(driver.version) + " " +
           (driver.is_emulated() ? std::string("emulated") : release_of_driver()) + "\nprocessor " +
           device.target()->processor + "\nlines " + std::to_string(with_lines) + "\n" + ptx;
}

// The modules that threads compile now.
class Compiling {
public:
    Compiling() : others_(count_.fetch_add(1)) {}
    ~Compiling() { --count_; }
    Compiling(const Compiling&) = delete;
    Compiling& operator=(const Compiling&) = delete;
    bool is_alone() const { return others_ == 0; }

private:
    static inline std::atomic<int> count_ = 0;
    int others_;
};

// Whether NVIDIA's library is to compile, if it is there. The emulated device has no use for real machine code.
bool should_use_library(const Compiling& compiling) {
    PtxCompiler* const compiler = ptx_compiler();
    return compiler && (compiler->is_chosen() || (!compiling.is_alone() && !driver().is_emulated()));
}

// Loads the stored image, or compiles and stores a new one. Null on any failure.
CUmodule load_kept(const char* ptx, bool with_lines, CudaContext& device) {
    // A link cannot resolve functions that the driver provides.
    if (std::strstr(ptx, ".extern .func")) return nullptr;
    DriverImageCache* store = driver_image_cache();
    if (store && !store->is_open()) store = nullptr;
    const std::string of = store ? made_of(ptx, with_lines, device) : "";
    if (const auto known = store ? store->load(of) : std::nullopt) {
        if (const Attempt attempt = load(known->data(), false); attempt.result == kSuccess) return attempt.handle;
        store->remove(of);
    }
    const auto load_made = [&](const std::vector<std::byte>& made) -> CUmodule {
        if (made.empty()) return nullptr;
        const Attempt attempt = load(made.data(), false);
        if (attempt.result != kSuccess) return nullptr;
        if (store) store->store(of, made);
        return attempt.handle;
    };
    const Compiling compiling;
    if (should_use_library(compiling))
        if (CUmodule const module = load_made(ptx_compiler()->compile(ptx, device.target()->processor))) return module;
    return store && can_link() ? load_made(link(ptx, with_lines)) : nullptr;
}

// "8.7" for ".version 8.7".
std::string ptx_version(std::string_view ptx) {
    constexpr std::string_view kWord = ".version ";
    const std::size_t at = ptx.find(kWord);
    if (at == std::string_view::npos) return "none";
    const std::string_view rest = ptx.substr(at + kWord.size());
    return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

}  // namespace

bool runs_on(const std::string& processor, int architecture) {
    constexpr std::string_view kPrefix = "sm_";
    if (!processor.starts_with(kPrefix)) return false;
    const int made_for = std::atoi(processor.c_str() + kPrefix.size());
    return made_for / 10 == architecture / 10 && made_for <= architecture;
}

std::string with_block_bound(std::string_view ptx, unsigned threads) {
    constexpr std::string_view kEntry = ".entry ";
    const std::string bound = "\n.maxntid " + std::to_string(threads) + "\n";
    std::string text;
    while (true) {
        const std::size_t entry = ptx.find(kEntry);
        if (entry == std::string_view::npos) break;
        const std::size_t end = ptx.find(')', entry) + 1;  // of the parameters
        text.append(ptx.substr(0, end)).append(bound);
        ptx.remove_prefix(end);
    }
    return text.append(ptx);
}

CudaModule load_module(const CudaCode& code, CudaContext& device) {
    const CudaContext::Inside inside(device);
    const RelaxedCapture relaxed;
    std::string why;  // reason for not using the machine code
    if (!code.machine_code.empty()) {
        if (runs_on(code.processor, device.gpu()->arch)) {
            const Attempt attempt = load(code.machine_code.data(), false);
            if (attempt.result == kSuccess) return {attempt.handle, "machine code for " + code.processor};
            why = ", as the driver does not take the machine code for " + code.processor + ": " +
                  error_text(attempt.result) + (attempt.said.empty() ? "" : "; it says: " + attempt.said);
        } else {
            why = ", as the machine code is for " + code.processor;
        }
    }
    const std::string origin = "PTX" + (code.processor.empty() ? "" : " for " + code.processor) +
                               ", compiled by the driver for " + device.target()->processor + why;
    const bool with_lines = has_lines(code.ptx);
    if (CUmodule const kept = load_kept(code.ptx, with_lines, device)) return {kept, origin};
    const Attempt attempt = load(code.ptx, with_lines);
    if (attempt.result == kSuccess) return {attempt.handle, origin};
    if (attempt.result == kUnsupportedPtx)
        throw UsageError("launch()", "the CUDA driver is too old for the code of a kernel on '" + device.alias +
                                         "': it is of CUDA " + std::to_string(driver().version / 1000) + "." +
                                         std::to_string(driver().version % 1000 / 10) +
                                         ", and does not know the version of its PTX (" + ptx_version(code.ptx) +
                                         "; CUDA 11.8 knows 7.8, 12.8 knows 8.7). help: a newer driver");
    try {
        device.check(attempt.result, "cuModuleLoadDataEx");
    } catch (const UsageError& error) {
        if (attempt.said.empty()) throw;
        throw UsageError("launch()", std::string(error.what()) + "; its compiler says: " + attempt.said);
    }
    return {};
}

}  // namespace weft::runtime
