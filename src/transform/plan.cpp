#include "transform/plan.h"

#include <algorithm>

#include "ir/typing.h"
#include "ir/walk.h"
#include "transform/analysis/cost/thread_cost.h"
#include "transform/analysis/long_loops.h"
#include "transform/analysis/order_dependence.h"
#include "transform/analysis/privatised.h"
#include "transform/analysis/read_only.h"
#include "transform/analysis/thread_private_elements.h"
#include "types/leaves.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;

class Planner {
public:
    Planner(const ir::Function& function, const PlanOptions& options, bool callees_get_nulls, KernelPlan& plan)
        : function_(function), options_(options), plan_(plan) {
        plan_.function = &function;
        plan_.parameters_may_be_null = function.is_kernel ? options.null_arrays : callees_get_nulls;
        plan_.others_may_be_null = plan_.parameters_may_be_null;
    }

    void run() {
        if (function_.is_kernel && ir::operation_count(function_.body) <= options_.most_operations_in_lanes)
            plan_.uniformity = find_uniformity(function_);
        plan_.arithmetic = find_arithmetic(function_, options_.fuse_fp);
        plan_.depends_on_order = depends_on_order(function_, options_.noalias);
        plan_.has_long_loops = has_long_loops(function_);
        if (function_.is_kernel && !options_.debug) plan_.own = thread_private_elements(function_);
        if (function_.is_kernel && options_.noalias) plan_.read_only = read_only_memories(function_);
        find_memories();
        ir::for_each_operation(function_.body, [&](const Operation& operation) { visit(operation); });
        find_additions();
        if (options_.coarsens && !options_.debug) plan_.choices_of_accesses = choices_of_accesses(function_);
        if (!function_.is_kernel) return;
        if (options_.vector_unit) choose_lanes_by_cost();
        if (options_.coarsens) choose_form_of_threads();
    }

private:
    void choose_lanes_by_cost() {
        plan_.size = body_size(function_.body);
        plan_.lane_choice =
            choose_lanes(function_, plan_.uniformity, *options_.vector_unit, options_.lanes, options_.short_rows);
        const int lanes = plan_.lane_choice.lanes;
        plan_.cost = thread_cost(function_, plan_.uniformity, lanes);
        if (lanes > 1) plan_.arm_forms = find_arm_forms(function_);
        if (plan_.privatised.empty()) return;
        find_accumulated();
        find_plain_when_alone();
        if (!plan_.plain_when_alone.empty())
            plan_.cost_when_alone = thread_cost(function_, plan_.uniformity, lanes, plan_.plain_when_alone);
    }

    void choose_form_of_threads() {
        // Shuffles and atomics of shared memory have 32 or 64 bits.
        for (const auto& [atomic, facts] : plan_.atomics) {
            if (!plan_.privatised.contains(facts.memory)) continue;
            const int bits = info(atomic->operands.back()->type.scalar()).bits;
            if (bits != 32 && bits != 64) plan_.privatised.erase(facts.memory);
        }
        if (!plan_.privatised.empty()) {
            find_accumulated();
            find_shared_copies();
        }
        const auto is_combined = [&](const Operation& operation) {
            return plan_.accumulated.contains(&operation) ||
                   (ir::is_atomic(operation.op) && plan_.shared_copies.contains(plan_.atomics.at(&operation).memory));
        };
        Coarsening coarsening = find_coarsening(function_, is_combined);
        // The order in which combined contributions arrive is unspecified anyway.
        if (coarsening.combines || !plan_.depends_on_order) plan_.coarsening = std::move(coarsening);
    }

    void find_shared_copies() {
        constexpr std::size_t kMostCopies = 2;
        if (body_size(function_.body).leaves > kSmallCombiningBody) return;
        ir::for_each_operation(function_.body, [&](const Operation& operation) {
            if (!ir::is_atomic(operation.op) || plan_.accumulated.contains(&operation)) return;
            const Memory& memory = plan_.atomics.at(&operation).memory;
            if (!plan_.privatised.contains(memory) || plan_.uncontended.contains(memory) ||
                plan_.halo.memories.contains(memory) || plan_.shared_copies.size() == kMostCopies)
                return;
            const Type array = function_.parameters()[static_cast<std::size_t>(memory.parameter)]->type;
            if (!array.is_array() || array.ndim() == 0) return;
            if (array.element().is_scalar() || array.element().is_numeric_aggregate())
                plan_.shared_copies.insert(memory);
        });
    }

    void find_accumulated() {
        constexpr int kMostAccumulators = 8;  // more would not stay in registers
        int count = 0;
        ir::for_each_operation(function_.body, [&](const Operation& operation) {
            if (!ir::is_atomic(operation.op)) return;
            const AtomicFacts& facts = plan_.atomics.at(&operation);
            const int leaves = leaf_count(operation.operands.back()->type);
            if (!facts.is_fixed || !plan_.privatised.contains(facts.memory) || count + leaves > kMostAccumulators)
                return;
            count += leaves;
            plan_.accumulated.insert(&operation);
        });
    }

    void find_plain_when_alone() {
        if (plan_.size.leaves > kSmallCombiningBody) return;
        ir::for_each_operation(function_.body, [&](const Operation& operation) {
            if (!ir::is_atomic(operation.op) || plan_.accumulated.contains(&operation)) return;
            const Memory& memory = plan_.atomics.at(&operation).memory;
            if (plan_.privatised.contains(memory) && !plan_.uncontended.contains(memory) &&
                !plan_.halo.memories.contains(memory))
                plan_.plain_when_alone.insert(&operation);
        });
    }

    void find_memories() {
        if (!function_.is_kernel || options_.debug || !options_.noalias) return;
        plan_.halo = find_halo(function_);
        if (options_.null_arrays) return;  // array parameters may be null
        plan_.privatised = privatised_memories(function_);
        if (!options_.private_gradients) return;
        for (const Scattered& scattered : scattered_gradients(function_))
            plan_.uncontended.insert({scattered.parameter, true});
    }

    void visit(const Operation& operation) {
        if (ir::is_atomic(operation.op)) {
            plan_.atomics.emplace(&operation, facts_of(operation));
        } else if (operation.op == Op::for_ || operation.op == Op::while_) {
            if (has_known_bounds(operation)) plan_.loops_of_launch.insert(&operation);
            NegativeIndexChecks checks = negative_index_checks(operation);
            if (!checks.choices.empty()) plan_.loop_index_checks.emplace(&operation, std::move(checks));
        } else if (operation.op == Op::null ||
                   (operation.op == Op::load && ir::holds_array(operation.result()->type))) {
            plan_.others_may_be_null = true;
        }
    }

    AtomicFacts facts_of(const Operation& atomic) const {
        AtomicFacts facts{memory_of(function_, atomic.operands[0]), true, nullptr};
        facts.is_fixed = std::all_of(atomic.operands.begin(), atomic.operands.end() - 1,
                                     [&](const ir::Value* operand) { return is_launch_invariant(function_, operand); });
        const auto reached = plan_.halo.memories.find(facts.memory);
        if (reached != plan_.halo.memories.end()) facts.first_index = indices_from_start(atomic)[reached->second];
        return facts;
    }

    bool has_known_bounds(const Operation& loop) const {
        return loop.op == Op::for_ && !loop.guarded && is_launch_invariant(function_, loop.operands[0]) &&
               is_launch_invariant(function_, loop.operands[1]);
    }

    // Finds additions of numbers to gradients within the halo, by which neighbouring lanes add to neighbouring
    // elements.
    void find_additions() {
        if (plan_.halo.memories.empty()) return;
        const auto is_plain = [&](const Operation& operation) {
            const Type type = operation.operands.back()->type;
            const bool is_float = type.is_scalar() && (type.scalar() == Scalar::f32 || type.scalar() == Scalar::f64);
            if (!is_float || operation.operands.size() < 3 || plan_.arithmetic.is_used(operation.result()))
                return false;
            const LaneShape last = plan_.uniformity.shape(operation.operands[operation.operands.size() - 2]);
            const bool is_linear = last.kind == LaneShape::Kind::linear && last.stride == 1;
            return (is_linear || last.mostly_contiguous) &&
                   plan_.halo.memories.contains(plan_.atomics.at(&operation).memory);
        };
        plan_.adjacent_additions = find_adjacent_additions(function_, is_plain);
        for (const AdjacentAdditions& group : plan_.adjacent_additions)
            for (const AdjacentAdditions::Member& member : group.members)
                plan_.adjacent_additions_of.emplace(member.add, &group);
    }

    const ir::Function& function_;
    const PlanOptions& options_;
    KernelPlan& plan_;
};

bool has_nulls(const ir::Module& module) {
    bool found = false;
    for (const auto& function : module.functions)
        ir::for_each_operation(function->body, [&](const Operation& operation) { found |= operation.op == Op::null; });
    return found;
}

}  // namespace

ModulePlan plan(const ir::Module& module, const PlanOptions& options) {
    const bool callees_get_nulls = module.functions.size() > 1 && has_nulls(module);
    ModulePlan plans(module.functions.size());
    for (std::size_t i = 0; i < plans.size(); ++i)
        Planner(*module.functions[i], options, callees_get_nulls, plans[i]).run();
    return plans;
}

}  // namespace weft::transform
