#include "transform/pipeline.h"

namespace weft::transform {

void run_pipeline(ir::Module& module, const PipelineOptions& options) {
    // Runs one pass; true where the pipeline goes on after it.
    const auto pass = [&](std::string_view name, auto&& body) {
        body();
#ifndef NDEBUG
        ir::verify(module);
#endif
        if (options.after_pass) options.after_pass(name, module);
        return options.stop_after != name;
    };

    if (!pass("inline", [&] { inline_calls(module); })) return;
    const auto simplify_all = [&] {
        for (const auto& function : module.functions) simplify(*function);
    };
    const auto replace_all = [&](auto&& make) {
        for (auto& function : module.functions) function = make(*function);
    };
    if (!pass("simplify", simplify_all)) return;
    if (options.adjoint) {
        const auto make = [&](const ir::Function& kernel) { return adjoint(kernel, *options.adjoint); };
        if (!pass("adjoint", [&] { replace_all(make); }) || !pass("simplify", simplify_all)) return;
    }
    if (options.jvp) {
        const auto make = [&](const ir::Function& kernel) { return jvp(kernel, *options.jvp); };
        if (pass("jvp", [&] { replace_all(make); })) pass("simplify", simplify_all);
    }
}

}  // namespace weft::transform
