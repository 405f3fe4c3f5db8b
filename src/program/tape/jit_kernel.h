// A Kernel for tapes: code of its adjoints is compiled when a backward pass needs it.
#pragma once

#include "program/kernel/kernel.h"
#include "program/tape/differentiable_kernel.h"

namespace weft::program {

// Threads: as Kernel.
class JitKernel final : public DifferentiableKernel {
public:
    // The kernel must outlive this object.
    explicit JitKernel(Kernel& kernel) : DifferentiableKernel(kernel.signature()), kernel_(kernel) {}

    const KernelFacts& facts(const Launch& launch) const override;
    std::shared_ptr<const LaunchNeeds> needs(const Launch& launch, const KernelFacts& facts,
                                             std::span<const std::uint8_t> arguments) const override;
    bool has_derivative(const Launch& launch, std::size_t written, std::size_t read) const override;
    void launch_adjoint(const DerivedLaunch& what, const NanCheck* check) const override;

private:
    Kernel& kernel_;
};

}  // namespace weft::program
