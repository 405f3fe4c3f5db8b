#include <string>

#include "ir/ir.h"
#include "jit/compiler_version.h"
#include "jit/jit.h"
#include "llvm/Config/llvm-config.h"

namespace weft::jit {

// One text with a line for each thing that the machine code depends on, hashed. Nothing in it differs between processes
// on one machine: no address, no time, no order of a hash table.
Digest cache_key(const ir::Module& module, const Options& options) {
    const codegen::TargetInfo& target = host_target();
    std::string text;
    const auto add = [&](std::string_view name, std::string_view value) {
        text.append(name).append(" ").append(value).append("\n");
    };
    const auto add_flag = [&](std::string_view name, bool value) { add(name, value ? "1" : "0"); };
    add("weft", WEFT_COMPILER_VERSION);
    add("llvm", LLVM_VERSION_STRING);
    add("sleef", WEFT_SLEEF_VERSION);
    add("triple", target.triple);
    add("cpu", target.cpu);
    add("features", target.features);
    add("vector_bits", std::to_string(target.vector_bits));
    add("optimization_level", std::to_string(options.optimization_level));
    add("lanes", std::to_string(options.codegen.lanes));
    add_flag("short_rows", options.codegen.short_rows);
    add_flag("debug", options.codegen.debug);
    add_flag("fast_math", options.codegen.fast_math);
    add_flag("line_info", options.codegen.line_info);
    add_flag("dense", options.codegen.dense);
    add_flag("noalias", options.codegen.noalias);
    add_flag("null_arrays", options.codegen.null_arrays);
    add_flag("exclusive", options.codegen.exclusive);
    add("ir", ir::print(module, /*names=*/false));
    // Debug information carries the user's places, which the text without names leaves out.
    if (options.codegen.line_info) {
        for (const SourcePtr& source : module.sources) add("source", source->path);
        add("places", ir::print(module, /*names=*/true));
    }
    return hash_bytes(text);
}

}  // namespace weft::jit
