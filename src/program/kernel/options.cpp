#include "program/kernel/options.h"

#include "jit/disk_cache.h"

namespace weft::program {

CompileOptions::CompileOptions(const Variant& variant, const LaunchLayout& layout) {
#define WEFT_OF_LAUNCH(type, name, ...) name = variant.name;
#define WEFT_OF_LAYOUT(type, name, ...) name = layout.name;
#include "ir/specialization.def"
}

PassOptions CompileOptions::passes() const {
    PassOptions result;
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) WEFT_ONLY_##passes(result.name = name;)
#include "ir/specialization.def"
    result.derivation = derivation;
    result.stack_bytes = stack_bytes;
    result.stack_slots = stack_slots;
    return result;
}

jit::Options CompileOptions::code() const {
    jit::Options result;
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) WEFT_ONLY_##code(result.codegen.name = name;)
#include "ir/specialization.def"
    // The thread of a fault is known only in code for one lane.
    if (nan_check || serial || huge) result.codegen.lanes = 1;
    result.target = target;
    result.optimization_level = optimization_level;
    result.native.compiler = host_compiler;
    if (cache) result.native.cache = jit::cache_folder(cache_folder);
    return result;
}

LaunchProperties CompileOptions::launches() const {
    LaunchProperties result;
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) WEFT_ONLY_##launches(result.name = name;)
#include "ir/specialization.def"
    return result;
}

}  // namespace weft::program
