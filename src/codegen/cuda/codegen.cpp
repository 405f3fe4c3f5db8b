#include <cstdlib>

#include "codegen/cuda/emitter.h"

namespace weft::codegen {

namespace {

class CudaCodegen final : public TargetCodegen {
public:
    explicit CudaCodegen(const ModuleState& state)
        : state_(state), machine_(std::atoi(state.target.processor.c_str() + 3), state.target.has_libclc) {}

    std::unique_ptr<Emitter> kernel(const transform::KernelPlan& plan, Remarks&) override { return callee(plan); }
    std::unique_ptr<Emitter> callee(const transform::KernelPlan& plan) override {
        return std::make_unique<CudaEmitter>(plan, machine_, state_.options, state_.module, state_.natives,
                                             state_.callees, reporting_);
    }

private:
    const ModuleState state_;
    const CudaMachine machine_;
    CudaReporting reporting_;
};

}  // namespace

std::unique_ptr<TargetCodegen> cuda_codegen(const ModuleState& state) { return std::make_unique<CudaCodegen>(state); }

}  // namespace weft::codegen
