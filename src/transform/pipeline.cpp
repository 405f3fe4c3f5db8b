#include "transform/pipeline.h"

#include <algorithm>

#include "transform/adjoint/functions.h"
#include "transform/adjoint/record.h"
#include "transform/signs.h"

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

    const auto simplify_all = [&] {
        for (const auto& function : module.functions) simplify(*function);
    };
    const auto replace_kernels = [&](auto&& make) {
        for (auto& function : module.functions)
            if (function->is_kernel) function = make(*function);
    };
    if (!pass("launch", [&] { fit_to_launch(module, options.launch_rank); })) return;
    // Calls that have derivatives of their own stay until these have been used.
    const bool derives = options.adjoint || options.jvp;
    const int again = options.adjoint && options.jvp ? 1 : 0;
    write_gradients(module, derives ? again + 1 : 0);
    if (derives) prepare_opaque(module, again);
    const bool has_opaque = derives && std::any_of(module.functions.begin(), module.functions.end(),
                                                   [](const auto& f) { return f->has_own_derivative(); });
    const auto inline_rest = [&] { return !has_opaque || (pass("inline", [&] { inline_calls(module); })); };
    const bool shares = options.shares && !derives && !options.record && !options.finite && !options.checks_parts;
    const Calls calls = has_opaque ? Calls::opaque : shares ? Calls::unshared : Calls::all;
    if (!pass("inline", [&] { inline_calls(module, calls); })) return;
    const bool has_calls = shares && module.functions.size() > 1;
    for (const auto& function : module.functions) split_local_atomics(*function);
    if (!pass("simplify", simplify_all)) return;
    bool has_signs = false;
    if (!pass("signs", [&] {
            for (const auto& function : module.functions) has_signs |= drop_signs(*function);
        }))
        return;
    if (has_signs && !pass("simplify", simplify_all)) return;
    // Makes atomics of elements that one thread has to itself plain.
    const auto split_own = [&](Own which) {
        if (!options.distinct || has_calls) return true;  // what a function accesses is not known
        bool any = false;
        const auto split = [&] {
            for (const auto& function : module.functions)
                if (function->is_kernel) any |= split_own_atomics(*function, options.noalias, which);
        };
        return pass("own", split) && (!any || pass("simplify", simplify_all));
    };
    // What is only added to has a simpler derivative as an atomic; of what is read too the reads are known then.
    if (options.record || options.adjoint)
        if (!split_own(Own::read_too)) return;
    if (options.record) {
        const auto make = [](const ir::Function& kernel) { return with_records(kernel, Records::written); };
        if (!pass("record", [&] { replace_kernels(make); }) || !pass("simplify", simplify_all)) return;
    }
    if (options.adjoint) {
        const auto make = [&](const ir::Function& kernel) { return adjoint(kernel, *options.adjoint); };
        const auto share = [&] {
            for (const auto& function : module.functions)
                if (function->is_kernel) share_gradients(*function);
        };
        if (!pass("adjoint", [&] { replace_kernels(make); }) || !inline_rest()) return;
        if (!pass("gradients", share) || !pass("simplify", simplify_all)) return;
    }
    if (options.jvp) {
        const auto make = [&](const ir::Function& kernel) { return jvp(kernel, *options.jvp); };
        if (!pass("jvp", [&] { replace_kernels(make); }) || !(options.adjoint || inline_rest()) ||
            !pass("simplify", simplify_all))
            return;
    }
    if (!split_own(Own::all)) return;
    if (options.finite) {
        const auto note = [&] {
            for (const auto& function : module.functions)
                if (function->is_kernel) note_finite_writes(*function);
        };
        if (!pass("finite", note)) return;
    }
    if (options.checks_parts) return;
    bool moved = false;
    const auto store = [&] {
        for (const auto& function : module.functions) moved |= keep_large_values_in_memory(*function);
    };
    if (pass("storage", store) && moved) pass("simplify", simplify_all);
}

}  // namespace weft::transform
