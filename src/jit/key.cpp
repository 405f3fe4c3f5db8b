#include <string>

#include "ir/ir.h"
#include "jit/compiler_version.h"
#include "jit/jit.h"
#include "jit/libdevice.h"
#include "llvm/Config/llvm-config.h"

namespace weft::jit {

// One text with a line for each thing that the machine code depends on, hashed. Nothing in it differs between processes
// on one machine: no address, no time, no order of a hash table.
Digest cache_key(const ir::Module& module, const Options& options) {
    // By name, so that an option that is added does not compile before it stands here. What is left out does not decide
    // about the code: `native` says which compiler makes what the C++ of the user means, and where that is kept.
    const auto& [target, codegen, optimization_level, native] = options;
    const auto& [debug, notes_accesses, fast_math, fuse_fp, line_info, lanes, short_rows, dense, noalias, null_arrays,
                 private_gradients, huge, most_threads, least_blocks, max_registers] = codegen;
    const auto& [kind, triple, processor, features] = target;
    std::string text;
    const auto add = [&](std::string_view name, std::string_view value) {
        text.append(name).append(" ").append(value).append("\n");
    };
    const auto add_number = [&](std::string_view name, int value) { add(name, std::to_string(value)); };
    add("weft", WEFT_COMPILER_VERSION);
    add("llvm", LLVM_VERSION_STRING);
    add("sleef", WEFT_SLEEF_VERSION);
    if (kind == Target::Kind::cuda) add("libdevice", libdevice_version());
    add_number("kind", static_cast<int>(kind));
    add("triple", triple);
    add("processor", processor);
    add("features", features);
    add_number("optimization_level", optimization_level);
    add_number("lanes", lanes);
    add_number("short_rows", short_rows);
    add_number("debug", debug);
    add_number("notes_accesses", notes_accesses);
    add_number("fast_math", fast_math);
    add_number("fuse_fp", fuse_fp);
    add_number("line_info", line_info);
    add_number("dense", dense);
    add_number("noalias", noalias);
    add_number("null_arrays", null_arrays);
    add_number("private_gradients", private_gradients);
    add_number("huge", huge);
    add_number("most_threads", most_threads);
    add_number("least_blocks", least_blocks);
    add_number("max_registers", max_registers);
    add("ir", ir::print(module, /*names=*/false));
    // Debug information carries the user's places, which the text without names leaves out.
    if (line_info) {
        for (const SourcePtr& source : module.sources) add("source", source->path);
        add("places", ir::print(module, /*names=*/true));
    }
    return hash_bytes(text);
}

}  // namespace weft::jit
