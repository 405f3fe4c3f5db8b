#include "codegen/cpu/emitter.h"

namespace weft::codegen {

namespace {

class CpuCodegen final : public TargetCodegen {
public:
    explicit CpuCodegen(const ModuleState& state) : state_(state), machine_(state.target) {}

    std::unique_ptr<Emitter> kernel(const transform::KernelPlan& plan, Remarks& remarks) override {
        const auto& [lanes, why] = plan.lane_choice;
        if (lanes > 1 || (state_.options.lanes > 1 && !state_.options.debug)) remarks = plan.uniformity.remarks;
        if (!why.empty()) remarks.push_back({plan.function->body.operations.front(), why});
        return emitter(plan, lanes);
    }
    std::unique_ptr<Emitter> callee(const transform::KernelPlan& plan) override { return emitter(plan, 1); }

private:
    std::unique_ptr<Emitter> emitter(const transform::KernelPlan& plan, int lanes) {
        return std::make_unique<CpuEmitter>(plan, lanes, machine_, state_.options, state_.module, state_.natives,
                                            state_.callees);
    }

    const ModuleState state_;
    const CpuMachine machine_;
};

}  // namespace

std::unique_ptr<TargetCodegen> cpu_codegen(const ModuleState& state) { return std::make_unique<CpuCodegen>(state); }

}  // namespace weft::codegen
