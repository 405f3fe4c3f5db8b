#include <algorithm>

#include "codegen/cpu/emitter.h"
#include "codegen/cpu/lane_count.h"

namespace weft::codegen {

namespace {

class CpuCodegen final : public TargetCodegen {
public:
    explicit CpuCodegen(const ModuleState& state) : state_(state), machine_(state.target) {}

    std::unique_ptr<Emitter> kernel(const transform::KernelPlan& plan, Remarks& remarks) override {
        return emitter(plan, choose_lanes(plan, remarks));
    }
    std::unique_ptr<Emitter> callee(const transform::KernelPlan& plan) override { return emitter(plan, 1); }

private:
    std::unique_ptr<Emitter> emitter(const transform::KernelPlan& plan, int lanes) {
        return std::make_unique<CpuEmitter>(plan, lanes, machine_, state_.options, state_.module, state_.natives,
                                            state_.callees);
    }

    // The kernel's lane count; adds the remarks on it.
    int choose_lanes(const transform::KernelPlan& plan, Remarks& remarks) const {
        const int asked = state_.options.debug ? 1 : state_.options.lanes;
        LaneChoice choice{asked};
        if (asked == 0) choice = preferred_lanes(plan, machine_, state_.options.short_rows);
        if (asked > 1 && !plan.uniformity.runs_in_lanes) choice.lanes = 1;
        choice.lanes = std::min(choice.lanes, most_lanes_on_stack(*plan.function));
        if (asked > 1 || choice.lanes > 1) remarks = plan.uniformity.remarks;
        if (!choice.why.empty()) remarks.push_back({plan.function->body.operations.front(), std::move(choice.why)});
        return choice.lanes;
    }

    const ModuleState state_;
    const CpuMachine machine_;
};

}  // namespace

std::unique_ptr<TargetCodegen> cpu_codegen(const ModuleState& state) { return std::make_unique<CpuCodegen>(state); }

}  // namespace weft::codegen
