#include "jit/native.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string_view>
#include <system_error>

#include "jit/disk_cache.h"
#include "jit/features.h"
#include "jit/hash.h"
#include "jit/native_header.h"
#include "jit/process.h"
#include "support/error.h"

namespace weft::jit {

namespace {

namespace fs = std::filesystem;
using codegen::NativeFunction;

constexpr const char* kVariable = "WEFT_CLANG";
constexpr const char* kNames[] = {"clang++-22", "clang++",    "clang++-21", "clang++-20", "clang++-19", "clang++-18",
                                  "clang++-17", "clang++-16", "clang++-15", "clang++-14", "clang"};

// ---- the compiler ----

[[noreturn]] void fail(const NativeFunction& function, const std::string& message, std::vector<Note> notes) {
    throw CompileError(function.call, message, std::move(notes), ErrorCategory::runtime);
}

bool is_compiler_named(const NativeOptions& options) {
    const char* const value = std::getenv(kVariable);
    return !options.compiler.empty() || (value != nullptr && *value != '\0');
}

// NVRTC is taken if it is named, or if there is no clang.
bool takes_nvrtc(const NativeOptions& options, const Target& target) {
    if (target.kind != Target::Kind::cuda) return false;
    if (is_nvrtc_named()) return !find_nvrtc().empty();
    if (is_compiler_named(options)) return false;
    if (std::ranges::any_of(kNames, [](const char* name) { return !find_program(name).empty(); })) return false;
    return !find_nvrtc().empty();
}

fs::path find_compiler(const NativeFunction& function, const NativeOptions& options, const Target& target) {
    const std::string subject = "'" + function.name + "' is written in C++, which needs a clang on this machine";
    const bool is_cuda = target.kind == Target::Kind::cuda;
    const Note help{Note::Kind::help,
                    std::string("install one (apt install clang), or name one by wp.config.host_compiler = "
                                "\"/path/to/clang++\" or the environment variable ") +
                        kVariable + (is_cuda ? "; or install NVRTC (pip install nvidia-cuda-nvrtc)" : ""),
                    {}};
    const auto named = [&](const std::string& name, const std::string& by) {
        const fs::path found = find_program(name);
        if (found.empty()) fail(function, subject + ": " + by + " is '" + name + "', which is no program", {help});
        return found;
    };
    if (!options.compiler.empty()) return named(options.compiler, "wp.config.host_compiler");
    if (const char* const value = std::getenv(kVariable); value != nullptr && *value != '\0')
        return named(value, std::string("the environment variable ") + kVariable);
    std::string looked_for;
    for (const char* const name : kNames) {
        if (const fs::path found = find_program(name); !found.empty()) return found;
        looked_for += (looked_for.empty() ? "" : ", ") + std::string(name);
    }
    fail(function, subject + ": there is none in the folders of PATH" + (is_cuda ? ", and no NVRTC either" : ""),
         {{Note::Kind::note, "looked for " + looked_for + (is_cuda ? "; libnvrtc.so.13, libnvrtc.so.12" : ""), {}},
          help});
}

// Tells apart compilers under one path.
std::string identity(const fs::path& compiler) {
    std::error_code error;
    const fs::path real = fs::canonical(compiler, error);
    const auto size = fs::file_size(real, error);
    const auto time = fs::last_write_time(real, error).time_since_epoch().count();
    return real.string() + " " + std::to_string(size) + " " + std::to_string(time);
}

#if defined(__x86_64__)
// The -march level that covers the target's features. A level and not the processor's name, which an older compiler may
// not know.
const char* level_of_processor(const Target& target) {
    struct Level {
        const char* name;
        std::vector<const char*> features;  // beyond the lower levels, and without implied ones
    };
    static const Level kLevels[] = {
        {"x86-64-v2", {"cx16", "popcnt", "sahf", "sse4.2"}},
        {"x86-64-v3", {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}},
        {"x86-64-v4", {"avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
    };
    const std::vector<std::string> there = required_features(target);
    const auto has = [&](const char* name) { return std::find(there.begin(), there.end(), name) != there.end(); };
    const char* best = "x86-64";
    for (const Level& level : kLevels) {
        if (!std::all_of(level.features.begin(), level.features.end(), has)) break;
        best = level.name;
    }
    return best;
}
#endif

std::vector<std::string> options_for_cpu(const Target& target) {
    std::vector<std::string> options = {
        "-x", "c++", "-fPIC", "-fno-math-errno", "-fno-stack-protector", "-fno-asynchronous-unwind-tables"};
#if defined(__x86_64__)
    options.push_back(std::string("-march=") + level_of_processor(target));
#endif
    return options;
}

// As CUDA, for the device alone. The bitcode is for the oldest GPU, which every clang knows, and LLVM compiles it for
// the kernel's; only __CUDA_ARCH__ shows it to the C++. With errno, clang keeps calls of sinf, which link_native()
// turns into libdevice's, and makes no llvm.sin, which GPUs do not have. PTX 6.3 has the instructions for warps.
std::vector<std::string> options_for_cuda(const Target& target) {
    const int architecture = 10 * std::atoi(target.processor.c_str() + std::string_view("sm_").size());
    return {"-x",
            "cuda",
            "-emit-llvm",
            "--cuda-device-only",
            "-nocudainc",
            "--cuda-gpu-arch=sm_75",
            "-nocudalib",
            "--cuda-path=/nonexistent",
            "-fdeclspec",
            "-fmath-errno",
            "-Xclang",
            "-target-feature",
            "-Xclang",
            "+ptx63",
            "-U__CUDA_ARCH__",
            "-D__CUDA_ARCH__=" + std::to_string(architecture)};
}

std::vector<std::string> options_of_compiler(const Target& target) {
    std::vector<std::string> options =
        target.kind == Target::Kind::cuda ? options_for_cuda(target) : options_for_cpu(target);
    // -fno-exceptions and -fno-rtti: an exception cannot leave a kernel. Warnings depend on the compiler and are off; a
    // missing return value is an error.
    for (const char* const option :
         {"-std=c++17", "-O2", "-c", "-fno-exceptions", "-fno-rtti", "-fno-strict-aliasing", "-fno-trapping-math",
          "-ffp-contract=on", "-fno-threadsafe-statics", "-Wno-everything", "-Werror=return-type"})
        options.push_back(option);
    return options;
}

// The text that the compiler reads.
std::string text_for(const NativeFunction& function, const Target& target) {
    if (target.kind != Target::Kind::cuda) return function.definitions + kNativeHeader + function.text;
    return function.definitions + kNativeCudaHeader + kNativeHeader + function.text +
           "#pragma clang force_cuda_host_device end\n";
}

// ---- its diagnostics ----

struct Diagnostic {
    bool is_error = false;
    Span span;  // none if it is not about the snippet
    std::string text;
};

Span span_in(const Source& snippet, int line, int column) {
    const std::string& text = snippet.line(line);
    Span span{&snippet, line, column - 1, column};
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    while (span.end_column < static_cast<int>(text.size()) && is_word(text[static_cast<std::size_t>(span.end_column)]))
        ++span.end_column;
    return span;
}

// Replaces the internal name of the function around the snippet by the user's.
std::string with_name(std::string text, const std::string& name) {
    const std::string ours = "'" + std::string(codegen::kFunctionName) + "'";
    if (const std::size_t at = text.find(ours); at != std::string::npos)
        text.replace(at, ours.size(), "'" + name + "'");
    return text;
}

std::vector<Diagnostic> read_diagnostics(const std::string& output, const std::string& name, const Source& snippet) {
    static const std::regex form(R"(^(.*?):(\d+):(?:(\d+):)? (fatal error|error|note): (.*)$)");
    std::vector<Diagnostic> found;
    for (std::size_t begin = 0; begin < output.size();) {
        const std::size_t end = std::min(output.find('\n', begin), output.size());
        const std::string line = output.substr(begin, std::min<std::size_t>(end - begin, 2000));
        begin = end + 1;
        std::smatch parts;
        if (!std::regex_match(line, parts, form)) continue;
        Diagnostic diagnostic{parts[4] != "note", {}, with_name(parts[5], name)};
        const int number = std::stoi(parts[2].str().substr(0, 9));
        if (parts[1] == codegen::kSnippetName && number <= static_cast<int>(snippet.lines.size()))
            diagnostic.span = span_in(snippet, number, parts[3].matched ? std::stoi(parts[3].str().substr(0, 9)) : 1);
        found.push_back(std::move(diagnostic));
    }
    return found;
}

// Throws the compiler's errors as ours: the first one at its line, some more below it.
[[noreturn]] void fail_with(const NativeFunction& function, const std::string& compiler, const std::string& ending,
                            const std::string& output) {
    constexpr std::size_t kMostShown = 4;
    std::vector<Diagnostic> all = read_diagnostics(output, function.name, *function.snippet);
    std::vector<Note> notes;
    std::optional<Diagnostic> first;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].is_error) continue;
        // An error inside a template of the header is reported at the line that instantiates it.
        for (std::size_t k = i + 1; !all[i].span && k < all.size() && !all[k].is_error; ++k) all[i].span = all[k].span;
        if (!first)
            first = all[i];
        else if (all[i].span && notes.size() < kMostShown)
            notes.push_back({Note::Kind::note, all[i].text, all[i].span});
    }
    const std::string subject = "the C++ of '" + function.name + "' does not compile";
    const Note program{Note::Kind::note, "the compiler is " + compiler, {}};
    if (!first) {
        const std::string last = output.substr(output.size() - std::min<std::size_t>(output.size(), 2000));
        fail(function, subject + ": " + compiler + ": " + ending,
             last.empty() ? std::vector<Note>{} : std::vector<Note>{{Note::Kind::note, "it says: " + last, {}}});
    }
    if (!first->span) {
        const bool ends_early = first->text.find("does not return a value") != std::string::npos;
        const std::string help = "check that its braces, quotes and comments are closed";
        fail(function, subject + ": " + (ends_early ? "not every path of it returns a value" : first->text),
             {program, {Note::Kind::help, ends_early ? "end each with a return, and " + help : help, {}}});
    }
    if (first->text.find("should not return a value") != std::string::npos)
        notes.push_back({Note::Kind::help, "annotate the Python function with the result's type: -> float", {}});
    if (first->text.find("'std'") != std::string::npos)
        notes.push_back({Note::Kind::help, "include its header: a line such as #include <cmath> in the C++", {}});
    notes.push_back({Note::Kind::note, "'" + function.name + "' is called here", function.call});
    notes.push_back(program);
    throw CompileError(first->span, first->text, std::move(notes), ErrorCategory::syntax);
}

std::vector<std::byte> run_compiler(const NativeFunction& function, const std::string& text, const fs::path& compiler,
                                    const std::vector<std::string>& options) {
    const TemporaryFolder folder;
    if (!folder.problem.empty()) fail(function, folder.problem, {{Note::Kind::help, kTemporaryFolderHelp, {}}});
    const fs::path source = folder.path / "function.cpp", object = folder.path / "function.o";
    const fs::path output = folder.path / "output.txt";
    std::ofstream(source, std::ios::binary) << text;
    std::vector<std::string> command = {compiler.string()};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"-o", object.string(), source.string()});
    const std::string ending = run_program(command, output);
    const std::string bytes = read_text(object);
    if (!ending.empty() || bytes.empty())
        fail_with(function, compiler.string(), ending.empty() ? "it wrote nothing" : ending, read_text(output));
    const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
    return {data, data + bytes.size()};
}

std::vector<std::byte> run_nvrtc(const NativeFunction& function, const std::string& text, const Target& target) {
    const NvrtcResult made = compile_by_nvrtc(text, target.processor);
    if (made.ptx.empty()) fail_with(function, find_nvrtc(), "it failed", made.errors);
    const auto* const data = reinterpret_cast<const std::byte*>(made.ptx.data());
    return {data, data + made.ptx.size()};
}

// The result of make(), from the cache if it has one of this key.
template <typename Make>
std::vector<std::byte> cached(const NativeOptions& options, const std::string& key_text, Make make) {
    if (!options.cache) return make();
    const Digest key = hash_bytes(key_text);
    DiskCache cache(*options.cache);
    if (std::optional<Binary> known = cache.load(key)) return std::move(known->code);
    Binary made;
    made.code = make();
    made.key = key;
    cache.store(made);
    return std::move(made.code);
}

}  // namespace

NativeCode compile_native(const NativeFunction& function, const Target& target, const NativeOptions& options) {
    if (takes_nvrtc(options, target)) {
        const std::string text = function.definitions + kNativeNvrtcHeader + kNativeHeader + function.text;
        const std::string key = "C++\n" + find_nvrtc() + "\n" + target.processor + "\n" + text;
        return {cached(options, key, [&] { return run_nvrtc(function, text, target); }), /*is_ptx=*/true};
    }
    const fs::path compiler = find_compiler(function, options, target);
    const std::vector<std::string> flags = options_of_compiler(target);
    const std::string text = text_for(function, target);
    std::string key = "C++\n" + identity(compiler) + "\n";
    for (const std::string& flag : flags) key += flag + "\n";
    return {cached(options, key + text, [&] { return run_compiler(function, text, compiler, flags); })};
}

std::string native_headers_version() {
    static const std::string version =
        hash_bytes(std::string(kNativeCudaHeader) + kNativeNvrtcHeader + kNativeHeader).hex();
    return version;
}

}  // namespace weft::jit
