#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "codegen/codegen.h"
#include "codegen/cost.h"
#include "codegen/emitter.h"
#include "codegen/lane_count.h"
#include "codegen/order.h"
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
void number_places(const ir::Module& module, const ir::Function& kernel, const transform::VectorPlan& plan,
                   const std::vector<const ir::Operation*>& checked, KernelEntry& entry) {
    if (plan.remarks.empty() && checked.empty()) return;
    std::unordered_map<const ir::Operation*, std::int32_t> numbers;
    for (const ir::Operation* operation : ir::numbered_operations(module, kernel))
        numbers.emplace(operation, static_cast<std::int32_t>(numbers.size()));
    for (const auto& remark : plan.remarks) entry.remarks.push_back({numbers.at(remark.operation), remark.text});
    for (const ir::Operation* operation : checked) entry.sites.push_back(numbers.at(operation));
}

// The functions that are no kernels. True where one has atomics.
bool lower_callees(const ir::Module& module, const Machine& machine, const Options& options, llvm::Module& into,
                   NativeFunctions& natives, Callees& callees) {
    if (std::ranges::all_of(module.functions, [](const auto& function) { return function->is_kernel; })) return false;
    std::deque<transform::VectorPlan> plans;
    std::deque<Emitter> emitters;
    for (const auto& function : module.functions)
        ir::for_each_operation(function->body, [&](const ir::Operation& operation) {
            callees.may_get_null |= operation.op == ir::Op::null;
        });
    for (std::size_t number = 0; number < module.functions.size(); ++number) {
        const ir::Function& function = *module.functions[number];
        if (function.is_kernel) continue;
        const transform::VectorPlan& plan = plans.emplace_back(transform::vectorize(function, 1));
        Emitter& emitter = emitters.emplace_back(function, plan, machine, options, into, natives, callees);
        callees.functions[&function] = emitter.declare_callee(symbol_of(function, number));
    }
    KernelEntry all;
    std::size_t at = 0;
    for (const auto& function : module.functions)
        if (!function->is_kernel) emitters[at++].emit_callee(callees.functions.at(function.get()), all);
    return all.cpu().meets;
}

}  // namespace

Lowered lower(const ir::Module& module, const TargetInfo& target, const Options& options, llvm::LLVMContext& context) {
    Machine machine(target);
    Lowered lowered{std::make_unique<llvm::Module>("weft", context), {}, {}};
    NativeFunctions natives;
    lowered.module->setTargetTriple(llvm::Triple(target.triple));
    Callees callees;
    const bool meets = lower_callees(module, machine, options, *lowered.module, natives, callees);
    for (std::size_t number = 0; number < module.functions.size(); ++number) {
        const ir::Function& kernel = *module.functions[number];
        if (!kernel.is_kernel) continue;
        LaneChoice choice{options.debug ? 1 : options.lanes};
        if (choice.lanes == 0) choice = preferred_lanes(kernel, machine, options.short_rows);
        transform::VectorPlan plan = transform::vectorize(kernel, choice.lanes);
        if (!choice.why.empty()) plan.remarks.push_back({kernel.body.operations.front(), std::move(choice.why)});
        KernelEntry entry;
        entry.name = kernel.name;
        entry.symbol = symbol_of(kernel, number);
        entry.tid_rank = kernel.tid_rank;
        entry.own_parameters.assign(kernel.own_parameters.begin(), kernel.own_parameters.end());
        entry.cpu().lanes = plan.lanes;
        entry.cpu().cost = estimate_cost(kernel, plan);
        entry.cpu().meets = meets;
        entry.cpu().ordered = std::ranges::any_of(module.functions, [&](const auto& function) {
            return (!function->is_kernel || function.get() == &kernel) && depends_on_order(*function, options.noalias);
        });
        Emitter emitter(kernel, plan, machine, options, *lowered.module, natives, callees);
        emitter.emit(entry);
        number_places(module, kernel, plan, emitter.checked_operations(), entry);
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
