#include "jit/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <type_traits>

#include "binary/binary.h"
#include "jit/toolkits.h"
#include "support/error.h"

namespace weft::jit {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNvrtcVariable = "WEFT_NVRTC";

using nvrtcProgram = struct NvrtcProgram*;

struct NvrtcLibrary {
    std::string name;
    int major = 0, minor = 0;
#define WEFT_NVRTC(function, parameters) int(*function) parameters = nullptr;
#include "jit/nvrtc.def"
#undef WEFT_NVRTC
};

// Libraries are never closed. Empty if none has that name, or functions are missing.
std::optional<NvrtcLibrary> open_nvrtc(const std::string& name) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return {};
    NvrtcLibrary library{name};
    bool is_whole = true;
    const auto find = [&](auto& function, const char* symbol) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
        is_whole &= function != nullptr;
    };
#define WEFT_NVRTC(function, parameters) find(library.function, #function);
#include "jit/nvrtc.def"
#undef WEFT_NVRTC
    if (!is_whole || library.nvrtcVersion(&library.major, &library.minor) != 0) return {};
    return library;
}

std::string named_nvrtc() {
    const char* const named = std::getenv(kNvrtcVariable);
    return named == nullptr ? "" : named;
}

// The options exist from CUDA 12 on.
std::optional<NvrtcLibrary> search_nvrtc() {
    if (const std::string named = named_nvrtc(); !named.empty()) {
        if (named == "0") return {};
        std::optional<NvrtcLibrary> library = open_nvrtc(named);
        if (library && library->major >= 12) return library;
        throw UsageError("launch()", std::string("the environment variable ") + kNvrtcVariable + " is '" + named +
                                         "', which is no NVRTC of CUDA 12 or later. help: the path of libnvrtc.so.12 "
                                         "or libnvrtc.so.13, or 0 for none");
    }
    for (const char* const file : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
        std::vector<std::string> names;
        for (const fs::path& folder : nvidia_packages_beside({"cu13", "cuda_nvrtc"}))
            names.push_back((folder / "lib" / file).string());
        for (const fs::path& toolkit : cuda_toolkits()) names.push_back((toolkit / "lib64" / file).string());
        names.emplace_back(file);
        for (const std::string& name : names)
            if (std::optional<NvrtcLibrary> found = open_nvrtc(name)) return found;
    }
    return {};
}

const std::optional<NvrtcLibrary>& nvrtc_of_process() {
    static const std::optional<NvrtcLibrary> library = search_nvrtc();
    return library;
}

// NVRTC has no headers of the C++ library. Its functions have no std:: before them.
struct NvrtcHeader {
    const char *name, *text;
};
constexpr const char* kMathHeader =
    "#pragma once\nnamespace std {\nusing ::abs; using ::acos; using ::asin; using ::atan; using ::atan2; using "
    "::cbrt;\nusing ::ceil; using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp; using ::exp2;\nusing "
    "::fabs; using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::hypot; using ::log;\nusing "
    "::log10; using ::log2; using ::pow; using ::rint; using ::round; using ::sin; using ::sinh; using ::sqrt;\nusing "
    "::tan; using ::tanh; using ::trunc;\n}\n";
constexpr NvrtcHeader kNvrtcHeaders[] = {
    {"cmath", kMathHeader}, {"math.h", kMathHeader}, {"cstdint", ""}, {"stdint.h", ""}, {"cstddef", ""},
    {"stddef.h", ""},       {"cstdio", ""},          {"stdio.h", ""}, {"cfloat", ""},   {"float.h", ""}};

// "snippet(3): error: text" and "snippet(3): error #20-D: text".
std::string as_clang_writes(const std::string& log) {
    static const std::regex form(R"(^(.*)\((\d+)\): (?:catastrophic )?error(?: #\S+)?: (.*)$)");
    std::string errors;
    for (std::size_t begin = 0; begin < log.size();) {
        const std::size_t end = std::min(log.find('\n', begin), log.size());
        const std::string line = log.substr(begin, std::min<std::size_t>(end - begin, 2000));
        begin = end + 1;
        if (std::smatch parts; std::regex_match(line, parts, form))
            errors += parts[1].str() + ":" + parts[2].str() + ":1: error: " + parts[3].str() + "\n";
    }
    return errors.empty() ? log : errors;
}

// ---- PTX ----

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%'; }

// Calls `visit` with each name of the text, and copies what it returns in its place.
template <typename Visit>
std::string with_names(std::string_view text, Visit visit) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && is_of_name(text[end])) ++end;
        if (end == at) {
            result += text[at++];
        } else {
            result += visit(text.substr(at, end - at));
            at = end;
        }
    }
    return result;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1);
        lines.push_back(text.substr(0, end + 1));
        text.remove_prefix(end + 1);
    }
    return lines;
}

// The name of a function or a variable of a module: ".visible .func f(", ".extern .func  (.param .b32 r) f" with the
// parameters on other lines, or ".global .align 4 .b8 v[16] = {0};".
std::string_view declared_name(std::string_view line) {
    if (line.find(".func") == std::string_view::npos) line = line.substr(0, line.find_first_of("[=;"));
    const std::size_t end = line.find_last_not_of(" \t\n();");
    if (end == std::string_view::npos) return {};
    std::size_t begin = end;
    while (begin > 0 && is_of_name(line[begin - 1])) --begin;
    return line.substr(begin, end + 1 - begin);
}

bool is_directive(std::string_view line, std::initializer_list<std::string_view> directives) {
    return line.starts_with('.') && std::ranges::any_of(directives, [&](std::string_view one) {
               return (" " + std::string(line)).find(one) != std::string::npos;
           });
}

// One text of NVRTC without its head and its unused constants. Names that it defines get the symbol before them, as
// other functions may have the same; kNativeSymbol becomes the symbol. Declarations of functions that are elsewhere,
// such as printf's, are left out if they are among `declared`, which gets the others.
std::string part_of(const NvrtcFunction& function, std::set<std::string>& declared) {
    std::map<std::string, int, std::less<>> uses;
    with_names(function.ptx, [&](std::string_view name) {
        ++uses[std::string(name)];
        return std::string();
    });
    std::set<std::string, std::less<>> defined;
    std::string text;
    bool is_left_out = false;
    for (const std::string_view line : lines_of(function.ptx)) {
        if (is_left_out) {
            is_left_out = line.find(';') == std::string_view::npos;
            continue;
        }
        if (is_directive(line, {" .version ", " .target ", " .address_size "}) || line.starts_with("//")) continue;
        const bool is_function = is_directive(line, {" .func ", " .func("});
        const bool is_variable = is_directive(line, {".global ", ".shared ", ".const "});
        if (is_function || is_variable) {
            const std::string name(declared_name(line));
            if (is_directive(line, {".extern "})) {
                if (!declared.insert(name).second) {
                    is_left_out = line.find(';') == std::string_view::npos;
                    continue;
                }
            } else {
                if (is_variable && uses[name] == 1) continue;
                defined.insert(name);
            }
        }
        text += line;
    }
    return with_names(text, [&](std::string_view name) {
        if (name == kNativeSymbol) return function.symbol;
        return defined.contains(name) ? function.symbol + "_" + std::string(name) : std::string(name);
    });
}

}  // namespace

bool is_nvrtc_named() { return !named_nvrtc().empty() && named_nvrtc() != "0"; }

std::string find_nvrtc() {
    const std::optional<NvrtcLibrary>& library = nvrtc_of_process();
    if (!library) return "";
    return library->name + " " + std::to_string(library->major) + "." + std::to_string(library->minor);
}

NvrtcResult compile_by_nvrtc(const std::string& text, const std::string& processor) {
    const NvrtcLibrary& library = *nvrtc_of_process();
    std::vector<const char*> names, texts;
    for (const NvrtcHeader& header : kNvrtcHeaders) {
        names.push_back(header.name);
        texts.push_back(header.text);
    }
    nvrtcProgram program = nullptr;
    NvrtcResult made;
    const int created = library.nvrtcCreateProgram(&program, text.c_str(), "function.cu",
                                                   static_cast<int>(names.size()), texts.data(), names.data());
    if (created != 0) return {"", "nvrtcCreateProgram() gives " + std::to_string(created)};
    const std::string architecture = "--gpu-architecture=compute_" + processor.substr(std::string_view("sm_").size());
    const char* const options[] = {architecture.c_str(), "--std=c++17", "--device-as-default-execution-space",
                                   "--relocatable-device-code=true", "--disable-warnings"};
    const int result = library.nvrtcCompileProgram(program, static_cast<int>(std::size(options)), options);
    // Both sizes count the NUL at the end.
    const auto read = [&](auto size_of, auto text_of) {
        std::size_t size = 0;
        std::string read;
        if (size_of(program, &size) != 0 || size == 0) return read;
        read.resize(size);
        if (text_of(program, read.data()) != 0) return std::string();
        read.pop_back();
        return read;
    };
    if (result == 0) made.ptx = read(library.nvrtcGetPTXSize, library.nvrtcGetPTX);
    if (made.ptx.empty()) {
        made.errors = as_clang_writes(read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog));
        if (made.errors.empty()) made.errors = "nvrtcCompileProgram() gives " + std::to_string(result);
    }
    library.nvrtcDestroyProgram(&program);
    return made;
}

std::string with_functions(std::string_view kernel, const std::vector<NvrtcFunction>& functions) {
    // PTX 7.8, of CUDA 11.8, has all that NVRTC writes for functions without newer intrinsics. It gives its own
    // version, which an older driver would refuse.
    constexpr int kVersion = 78;
    std::string result;
    std::set<std::string> declared;
    const std::vector<std::string_view> lines = lines_of(kernel);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string_view line = lines[i];
        if (line.starts_with(".version ")) {
            int major = 0, minor = 0;
            const char* const begin = line.data() + std::string_view(".version ").size();
            const auto [end, problem] = std::from_chars(begin, line.data() + line.size(), major);
            std::from_chars(end + 1, line.data() + line.size(), minor);
            const int version = std::max(kVersion, 10 * major + minor);
            result += ".version " + std::to_string(version / 10) + "." + std::to_string(version % 10) + "\n";
            continue;
        }
        const bool is_declaration = is_directive(line, {".extern .func"});
        const std::string_view name = is_declaration ? declared_name(line) : std::string_view();
        const auto found = std::ranges::find(functions, name, &NvrtcFunction::symbol);
        if (!is_declaration || found == functions.end()) {
            if (is_declaration) declared.insert(std::string(name));
            result += line;
            continue;
        }
        while (lines[i].find(';') == std::string_view::npos && i + 1 < lines.size()) ++i;
        result += part_of(*found, declared);
    }
    return result;
}

}  // namespace weft::jit
