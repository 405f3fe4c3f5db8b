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
    if (!pass("simplify", simplify_all) || !options.adjoint) return;
    if (!pass("adjoint", [&] {
            for (auto& function : module.functions) function = adjoint(*function, *options.adjoint);
        }))
        return;
    pass("simplify", simplify_all);
}

}  // namespace weft::transform
