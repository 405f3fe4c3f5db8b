// A kernel as a tape sees it: all that a recorded launch and its backward pass need of one. Implemented by JitKernel
// (jit_kernel.h), whose code is compiled in this process, and by kernels of a bundle (embed/).
//
// A kernel outlives its recorded launches. Threads: as the implementation says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "program/kernel/signature.h"
#include "program/launch/launch.h"
#include "program/tape/launch_needs.h"

namespace weft::program {

class DifferentiableKernel {
public:
    // The arguments of one launch, as KernelSignature::layout says.
    struct Launch {
        const runtime::Device& device;
        std::span<const std::int64_t> dims;
        const std::byte* block;
    };

    virtual ~DifferentiableKernel() = default;
    const KernelSignature& signature() const { return *signature_; }
    // The facts of some code for the launch. Effects, coordinates and the place in the source are those of any.
    virtual const KernelFacts& facts(const Launch& launch) const = 0;
    // `facts` are those of any code for the launch; `arguments` has the bits of launch_needs.h, by parameter. Throws
    // CompileError if an argument has a gradient and the program has no derivative.
    virtual std::shared_ptr<const LaunchNeeds> needs(const Launch& launch, const KernelFacts& facts,
                                                     std::span<const std::uint8_t> arguments) const = 0;
    // Whether parameter `written` may have a derivative by parameter `read`.
    virtual bool has_derivative(const Launch& launch, std::size_t written, std::size_t read) const = 0;
    // Runs the adjoint: `what` has no tangents, and no gradients of numbers.
    virtual void launch_adjoint(const DerivedLaunch& what, const NanCheck* check) const = 0;

protected:
    // The signature lives as long as this object.
    explicit DifferentiableKernel(const KernelSignature& signature) : signature_(&signature) {}

private:
    const KernelSignature* signature_;
};

}  // namespace weft::program
