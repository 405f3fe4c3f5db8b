#include <string>

#include "ir/ir.h"
#include "jit/compiler_version.h"
#include "jit/hash.h"
#include "jit/jit.h"
#include "jit/libdevice.h"
#include "llvm/Config/llvm-config.h"

namespace weft::jit {

// The hash of a text with a line for each input of the machine code. The text is the same in all processes on one
// machine: it holds no address, no time, no order of a hash table.
Digest cache_key(const ir::Module& module, const Options& options) {
    // By name, so that a new option does not compile before it is listed here. `native` is left out, as it does not
    // change the code: it names the compiler for the user's C++, and its cache.
    const auto& [target, codegen, optimization_level, native] = options;
    const auto& [kind, triple, processor, features] = target;
    std::string text;
    const auto add = [&](std::string_view name, std::string_view value) {
        text.append(name).append(" ").append(value).append("\n");
    };
    const auto add_number = [&](std::string_view name, int value) { add(name, std::to_string(value)); };
    add("weft", WEFT_COMPILER_VERSION);
    add("llvm", LLVM_VERSION_STRING);
    add("sleef", WEFT_SLEEF_VERSION);
    add("native", native_headers_version());
    if (kind == Target::Kind::cuda) add("libdevice", libdevice_version());
    add_number("kind", static_cast<int>(kind));
    add("triple", triple);
    add("processor", processor);
    add("features", features);
    add_number("optimization_level", optimization_level);
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) \
    WEFT_ONLY_##code(add_number(#name, codegen.name);)
#include "ir/specialization.def"
    add("ir", ir::print(module, /*names=*/false));
    // Debug information holds source positions, which the text without names leaves out.
    if (codegen.line_info) {
        for (const SourcePtr& source : module.sources) add("source", source->path);
        add("places", ir::print(module, /*names=*/true));
    }
    return hash_bytes(text);
}

}  // namespace weft::jit
