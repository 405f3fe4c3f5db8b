#include "transform/pipeline.h"

#include <algorithm>
#include <memory>

#include "transform/adjoint/atomic_results.h"
#include "transform/adjoint/functions.h"
#include "transform/adjoint/numbers.h"
#include "transform/inline/inline.h"
#include "transform/passes/follow_grid_order.h"
#include "transform/passes/launch_rank.h"
#include "transform/passes/nan_check.h"
#include "transform/passes/negative_indices.h"
#include "transform/passes/neighbour_rows.h"
#include "transform/passes/scalar_replacement.h"
#include "transform/passes/uncontended_atomics.h"
#include "transform/simplify/simplify.h"
#include "transform/tiles/lower_tiles.h"
#include "transform/vectors_in_memory/late_loads.h"
#include "transform/vectors_in_memory/vectors_in_memory.h"

namespace weft::transform {

namespace {

// The order of the passes. Each step returns whether the pipeline goes on after it.
class Pipeline {
public:
    Pipeline(ir::Module& module, const PipelineOptions& options) : module_(module), options_(options) {}

    void run() {
        derives_ = options_.adjoint || options_.jvp;
        // Calls are kept only without derivatives, and without instrumentation of all accesses.
        keeps_calls_ = options_.keeps_calls && !derives_ && !options_.keeps_atomic_results && !options_.nan_check &&
                       !options_.debug;
        prepare() && inline_and_simplify() && keep_atomic_results() && find_neighbour_rows_to_reverse() &&
            differentiate() && tangents() && split_uncontended(Uncontended::all) && follow_order() &&
            find_neighbour_rows() && check_nan() && put_vectors_in_memory();
    }

private:
    // Runs one pass; in debug builds, verifies the module behind it.
    template <typename Body>
    bool pass(std::string_view name, const Body& body) {
        body();
#ifndef NDEBUG
        ir::verify(module_);
#endif
        if (options_.after_pass) options_.after_pass(name, module_);
        return options_.stop_after != name;
    }
    template <typename Body>
    bool pass_on_functions(std::string_view name, const Body& body) {
        return pass(name, [&] {
            for (const auto& function : module_.functions) body(*function);
        });
    }
    template <typename Body>
    bool pass_on_kernels(std::string_view name, const Body& body) {
        return pass_on_functions(name, [&](ir::Function& function) {
            if (function.is_kernel) body(function);
        });
    }
    template <typename Make>
    bool replace_kernels(std::string_view name, const Make& make) {
        return pass(name, [&] {
            for (auto& function : module_.functions)
                if (function->is_kernel) function = make(*function);
        });
    }
    bool simplify_all() {
        return pass_on_functions("simplify", [](ir::Function& function) { simplify(function); });
    }
    bool inline_all(Calls which) {
        return pass("inline", [&] { inline_calls(module_, which); });
    }

    // Calls with custom derivatives stay until these have been used.
    bool prepare() {
        const int order = options_.adjoint && options_.jvp ? 1 : 0;
        if (!pass("tiles", [&] { lower_tiles(module_); })) return false;
        if (!pass("launch", [&] { fit_to_launch(module_, options_.launch_rank); })) return false;
        if (!pass("functions", [&] { write_gradients(module_, {derives_ ? order + 1 : 0, options_.stack_slots}); }))
            return false;
        if (!derives_) return true;
        if (!pass("custom_derivatives", [&] { prepare_custom_derivatives(module_, {order, options_.stack_slots}); }))
            return false;
        has_custom_derivatives_ = std::any_of(module_.functions.begin(), module_.functions.end(),
                                              [](const auto& function) { return function->has_own_derivative(); });
        return true;
    }

    bool inline_and_simplify() {
        if (!inline_all(has_custom_derivatives_ ? Calls::custom_derivatives
                        : keeps_calls_          ? Calls::except_noinline
                                                : Calls::all))
            return false;
        has_calls_ = keeps_calls_ && module_.functions.size() > 1;
        if (!pass_on_functions("scalar_replacement", replace_structs_by_fields)) return false;
        if (!pass_on_functions("local", split_local_atomics) || !simplify_all()) return false;
        bool has_negative_indices = false;
        const auto drop = [&](ir::Function& function) { has_negative_indices |= drop_negative_indices(function); };
        return pass_on_functions("negative_indices", drop) && (!has_negative_indices || simplify_all());
    }

    // Makes atomics of uncontended elements plain. Accesses in called functions are not known.
    bool split_uncontended(Uncontended which) {
        if (!options_.distinct || has_calls_) return true;
        bool any = false;
        const auto split = [&](ir::Function& kernel) {
            any |= split_uncontended_atomics(kernel, options_.noalias, which);
        };
        return pass_on_kernels("uncontended", split) && (!any || simplify_all());
    }

    // Elements that are only added to have a simpler derivative as atomics. If they are read too, the reads see plain
    // stores, whose values are known.
    bool keep_atomic_results() {
        if ((options_.keeps_atomic_results || options_.adjoint) && !split_uncontended(Uncontended::read_too))
            return false;
        if (!options_.keeps_atomic_results) return true;
        const auto make = [](const ir::Function& kernel) {
            return with_atomic_results(kernel, AtomicResults::written);
        };
        return replace_kernels("atomic_results", make) && simplify_all();
    }

    bool differentiate() {
        if (!options_.adjoint) return true;
        for (const auto& function : module_.functions)
            if (function->is_kernel) asks_one_grid_ &= grids_asked(*function) == 1;
        if (!options_.numbers.empty()) {
            const auto read = [&](ir::Function& kernel) { read_numbers_from_memory(kernel, options_.numbers); };
            if (!pass_on_kernels("numbers", read) || !simplify_all()) return false;
        }
        const auto make = [&](const ir::Function& kernel) { return adjoint(kernel, *options_.adjoint); };
        return replace_kernels("adjoint", make) && inline_custom_derivatives() &&
               pass_on_kernels("gradients", share_gradients) && simplify_all();
    }

    bool tangents() {
        if (!options_.jvp) return true;
        const auto make = [&](const ir::Function& kernel) { return jvp(kernel, *options_.jvp); };
        return replace_kernels("jvp", make) && (options_.adjoint || inline_custom_derivatives()) && simplify_all();
    }

    bool inline_custom_derivatives() { return !has_custom_derivatives_ || inline_all(Calls::all); }

    // Must follow every pass that identifies elements by thread coordinates. An adjoint may query fewer grids than the
    // kernel, and any grid of the kernel may give the order.
    bool follow_order() {
        const auto follow = [&](ir::Function& kernel) {
            const bool knows_order = asks_one_grid_ || grids_asked(kernel) != 1;
            follow_grid_order(kernel, /*sorts=*/knows_order && !options_.jvp);
        };
        return !options_.grid_order || (pass_on_kernels("grid_order", follow) && simplify_all());
    }

    bool find_neighbour_rows() { return options_.adjoint || loops_over_neighbour_rows(NeighbourRows::all); }

    // Runs before the adjoint is made: its loops then save the state of each row, not that of each item. Kernels whose
    // launch has recorded atomic results are left alone, as the loops must match.
    bool find_neighbour_rows_to_reverse() {
        return !options_.adjoint || loops_over_neighbour_rows(NeighbourRows::counted);
    }

    bool loops_over_neighbour_rows(NeighbourRows which) {
        if (!options_.neighbour_rows) return true;
        bool any = false;
        const auto find = [&](ir::Function& kernel) {
            if (which == NeighbourRows::all || !has_atomic_results(kernel))
                any |= loop_over_neighbour_rows(kernel, which);
        };
        return pass_on_kernels("neighbour_rows", find) && (!any || simplify_all());
    }

    bool check_nan() { return !options_.nan_check || pass_on_kernels("nan_check", insert_nan_checks); }

    bool put_vectors_in_memory() {
        bool moved = false;
        const VectorsInMemoryOptions storage{.noalias = options_.noalias, .checks_parts = options_.debug};
        const auto store = [&](ir::Function& function) { moved |= keep_vectors_in_memory(function, storage); };
        if (!pass_on_functions("vectors_in_memory", store)) return false;
        return !moved || (simplify_all() && pass_on_functions("late_loads", delay_component_loads));
    }

    ir::Module& module_;
    const PipelineOptions& options_;
    bool derives_ = false, keeps_calls_ = false;
    bool has_custom_derivatives_ = false;  // functions with custom derivatives, which are still called
    bool has_calls_ = false;
    bool asks_one_grid_ = true;
};

}  // namespace

void run_pipeline(ir::Module& module, const PipelineOptions& options) { Pipeline(module, options).run(); }

}  // namespace weft::transform
