#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "codegen/codegen.h"
#include "codegen/emitter.h"
#include "codegen/target.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::codegen {

namespace {

std::string symbol_of(const ir::Function& kernel, std::size_t number) {
    std::string symbol = "weft_" + std::to_string(number) + "_";
    for (char c : kernel.name) symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return symbol;
}

// Remarks and checks name operations by their numbers.
void number_places(const ir::Module& module, const ir::Function& kernel, const Remarks& remarks,
                   const std::vector<const ir::Operation*>& checked, KernelEntry& entry) {
    if (remarks.empty() && checked.empty()) return;
    std::unordered_map<const ir::Operation*, std::int32_t> numbers;
    for (const ir::Operation* operation : ir::numbered_operations(module, kernel))
        numbers.emplace(operation, static_cast<std::int32_t>(numbers.size()));
    for (const auto& remark : remarks) entry.remarks.push_back({numbers.at(remark.operation), remark.text});
    for (const ir::Operation* operation : checked) entry.sites.push_back(numbers.at(operation));
}

// Adds the function to `reporting` if it raises or prints, or calls one that does, and to `finding` if it or one that
// it calls looks up objects. `known` holds the functions visited.
void find_uses(const ir::Function& function, bool debug, std::unordered_set<const ir::Function*>& known,
               Callees& callees) {
    if (!known.insert(&function).second) return;
    ir::for_each_operation(function.body, [&](const ir::Operation& operation) {
        const bool is_call = operation.op == ir::Op::call;
        if (is_call) find_uses(*operation.function, debug, known, callees);
        const bool is_silent = operation.op == ir::Op::assert_ && !debug;
        if (is_call ? callees.reporting.contains(operation.function)
                    : ir::op_info(operation.op).effects == ir::Effects::reports && !is_silent)
            callees.reporting.insert(&function);
        if (is_call ? callees.finding.contains(operation.function) : operation.op == ir::Op::object)
            callees.finding.insert(&function);
    });
}

void lower_callees(const transform::ModulePlan& plans, bool debug, TargetCodegen& target, Callees& callees) {
    std::deque<std::unique_ptr<Emitter>> emitters;
    std::unordered_set<const ir::Function*> known;
    for (std::size_t number = 0; number < plans.size(); ++number) {
        const transform::KernelPlan& plan = plans[number];
        if (plan.function->is_kernel) continue;
        callees.may_get_null |= plan.parameters_may_be_null;
        callees.depend_on_order |= plan.depends_on_order;
        callees.have_long_loops |= plan.has_long_loops;
        find_uses(*plan.function, debug, known, callees);
        Emitter& emitter = *emitters.emplace_back(target.callee(plan));
        callees.functions[plan.function] = emitter.declare_callee(symbol_of(*plan.function, number));
    }
    std::size_t at = 0;
    for (const transform::KernelPlan& plan : plans) {
        if (plan.function->is_kernel) continue;
        Emitter& emitter = *emitters[at++];
        emitter.emit_callee(callees.functions.at(plan.function));
        callees.have_atomics |= emitter.has_atomics();
        callees.find_objects |= emitter.finds_objects();
        callees.ask_blocks |= emitter.asks_blocks();
    }
}

std::unique_ptr<TargetCodegen> codegen_for(const ModuleState& state) {
    switch (state.target.kind) {
        case Target::Kind::cpu:
            return cpu_codegen(state);
        case Target::Kind::cuda:
            return cuda_codegen(state);
    }
    throw InternalError("codegen: there is no back end for this kind of target");
}

}  // namespace

transform::PlanOptions plan_options(const Options& options, const TargetInfo& target) {
    transform::PlanOptions plan;
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) \
    WEFT_ONLY_##analyses(plan.name = options.name;)
#include "ir/specialization.def"
    if (options.lanes == 0) plan.most_operations_in_lanes = kMostOperationsInLanes;
    if (options.lanes == 1 || options.debug) plan.most_operations_in_lanes = 0;
    if (options.debug) plan.lanes = 1;
    if (target.kind == Target::Kind::cpu) plan.vector_unit = vector_unit(target);
    plan.coarsens = target.kind == Target::Kind::cuda && !options.debug && !options.null_arrays;
    return plan;
}

Lowered lower(const ir::Module& module, const transform::ModulePlan& plans, const TargetInfo& target,
              const Options& options, llvm::LLVMContext& context) {
    Lowered lowered{std::make_unique<llvm::Module>("weft", context), {}, {}};
    NativeFunctions natives;
    lowered.module->setTargetTriple(llvm::Triple(target.triple));
    Callees callees;
    const std::unique_ptr<TargetCodegen> back_end = codegen_for({target, options, *lowered.module, natives, callees});
    lower_callees(plans, options.debug, *back_end, callees);
    for (std::size_t number = 0; number < plans.size(); ++number) {
        const ir::Function& kernel = *plans[number].function;
        if (!kernel.is_kernel) continue;
        KernelEntry entry;
        entry.name = kernel.name;
        entry.symbol = symbol_of(kernel, number);
        entry.tid_rank = kernel.tid_rank;
        entry.uncontended_parameters.assign(kernel.uncontended_parameters.begin(), kernel.uncontended_parameters.end());
        Remarks remarks;
        const std::unique_ptr<Emitter> emitter = back_end->kernel(plans[number], remarks);
        emitter->emit_entry(entry);
        number_places(module, kernel, remarks, emitter->checked_operations(), entry);
        lowered.kernels.push_back(std::move(entry));
    }
    lowered.natives = natives.take();
    // Costs about 1 % of the compile time. LLVM's passes would crash on the problems found here.
    std::string problem;
    llvm::raw_string_ostream text(problem);
    if (llvm::verifyModule(*lowered.module, &text)) throw InternalError("codegen made invalid LLVM IR: " + problem);
    return lowered;
}

}  // namespace weft::codegen
