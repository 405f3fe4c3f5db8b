#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <unordered_map>

#include "codegen/codegen.h"
#include "codegen/cost.h"
#include "codegen/emitter.h"
#include "codegen/lane_count.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::codegen {

namespace {

std::string symbol_of(const ir::Function& kernel, std::size_t number) {
    std::string symbol = "weft_" + std::to_string(number) + "_";
    for (char c : kernel.name) symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return symbol;
}

// Remarks and checks by the numbers of their operations.
void number_places(const ir::Module& module, const ir::Function& kernel,
                   const std::vector<transform::Uniformity::Remark>& remarks,
                   const std::vector<const ir::Operation*>& checked, KernelEntry& entry) {
    if (remarks.empty() && checked.empty()) return;
    std::unordered_map<const ir::Operation*, std::int32_t> numbers;
    for (const ir::Operation* operation : ir::numbered_operations(module, kernel))
        numbers.emplace(operation, static_cast<std::int32_t>(numbers.size()));
    for (const auto& remark : remarks) entry.remarks.push_back({numbers.at(remark.operation), remark.text});
    for (const ir::Operation* operation : checked) entry.sites.push_back(numbers.at(operation));
}

// The functions that are no kernels. True where one has atomics.
bool lower_callees(const transform::ModulePlan& plans, const Machine& machine, const Options& options,
                   llvm::Module& into, NativeFunctions& natives, Callees& callees) {
    std::deque<Emitter> emitters;
    for (std::size_t number = 0; number < plans.size(); ++number) {
        const ir::Function& function = *plans[number].function;
        if (function.is_kernel) continue;
        callees.may_get_null |= plans[number].parameters_may_be_null;
        Emitter& emitter = emitters.emplace_back(plans[number], 1, machine, options, into, natives, callees);
        callees.functions[&function] = emitter.declare_callee(symbol_of(function, number));
    }
    KernelEntry all;
    std::size_t at = 0;
    for (const transform::KernelPlan& plan : plans)
        if (!plan.function->is_kernel) emitters[at++].emit_callee(callees.functions.at(plan.function), all);
    return all.cpu().meets;
}

// How many lanes a kernel gets, and what there is to say about it.
int choose_lanes(const transform::KernelPlan& plan, const Machine& machine, const Options& options,
                 std::vector<transform::Uniformity::Remark>& remarks) {
    const int asked = options.debug ? 1 : options.lanes;
    LaneChoice choice{asked};
    if (asked == 0) choice = preferred_lanes(plan, machine, options.short_rows);
    if (asked > 1 && !plan.uniformity.runs_in_lanes) choice.lanes = 1;
    if (asked > 1 || choice.lanes > 1) remarks = plan.uniformity.remarks;
    if (!choice.why.empty()) remarks.push_back({plan.function->body.operations.front(), std::move(choice.why)});
    return choice.lanes;
}

}  // namespace

transform::PlanOptions plan_options(const Options& options) {
    transform::PlanOptions plan;
    plan.noalias = options.noalias;
    plan.checked = options.debug;
    plan.null_arrays = options.null_arrays;
    plan.exclusive = options.exclusive;
    if (options.lanes == 0) plan.most_operations_in_lanes = kMostOperationsInLanes;
    if (options.lanes == 1 || options.debug) plan.most_operations_in_lanes = 0;
    return plan;
}

Lowered lower(const ir::Module& module, const transform::ModulePlan& plans, const TargetInfo& target,
              const Options& options, llvm::LLVMContext& context) {
    Machine machine(target);
    Lowered lowered{std::make_unique<llvm::Module>("weft", context), {}, {}};
    NativeFunctions natives;
    lowered.module->setTargetTriple(llvm::Triple(target.triple));
    Callees callees;
    const bool meets = lower_callees(plans, machine, options, *lowered.module, natives, callees);
    for (std::size_t number = 0; number < plans.size(); ++number) {
        const transform::KernelPlan& plan = plans[number];
        const ir::Function& kernel = *plan.function;
        if (!kernel.is_kernel) continue;
        std::vector<transform::Uniformity::Remark> remarks;
        const int lanes = choose_lanes(plan, machine, options, remarks);
        KernelEntry entry;
        entry.name = kernel.name;
        entry.symbol = symbol_of(kernel, number);
        entry.tid_rank = kernel.tid_rank;
        entry.own_parameters.assign(kernel.own_parameters.begin(), kernel.own_parameters.end());
        entry.cpu().lanes = lanes;
        entry.cpu().cost = estimate_cost(plan, lanes);
        entry.cpu().meets = meets;
        entry.cpu().ordered = std::ranges::any_of(plans, [&](const transform::KernelPlan& other) {
            return (!other.function->is_kernel || &other == &plan) && other.depends_on_order;
        });
        Emitter emitter(plan, lanes, machine, options, *lowered.module, natives, callees);
        emitter.emit(entry);
        number_places(module, kernel, remarks, emitter.checked_operations(), entry);
        lowered.kernels.push_back(std::move(entry));
    }
    lowered.natives = natives.take();
    // About a hundredth of the time to compile. On what is found here LLVM's passes would crash.
    std::string problem;
    llvm::raw_string_ostream text(problem);
    if (llvm::verifyModule(*lowered.module, &text)) throw InternalError("codegen made invalid LLVM IR: " + problem);
    return lowered;
}

}  // namespace weft::codegen
