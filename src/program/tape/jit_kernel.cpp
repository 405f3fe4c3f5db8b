#include "program/tape/jit_kernel.h"

#include "support/error.h"

namespace weft::program {

const KernelFacts& JitKernel::facts(const Launch& launch) const {
    return kernel_.facts(kernel_.variant_of(launch.device, launch.dims, launch.block));
}

std::shared_ptr<const LaunchNeeds> JitKernel::needs(const Launch& launch, const KernelFacts& facts,
                                                    std::span<const std::uint8_t> arguments) const {
    return launch_needs(kernel_, launch.device, facts, launch.dims, launch.block, arguments);
}

bool JitKernel::has_derivative(const Launch& launch, std::size_t written, std::size_t read) const {
    Derivation derivation;
    derivation.gradients.resize(kernel_.types().size(), transform::Gradient::none);
    for (const std::size_t parameter : {written, read})
        if (kernel_.types()[parameter].is_array()) derivation.gradients[parameter] = transform::Gradient::used;
    const Variant variant = kernel_.derived_variant_of(launch.device, launch.dims, launch.block);
    try {
        return kernel_.facts(variant, {}, derivation).adds_to_gradient[read];
    } catch (const CompileError&) {
        return true;  // not known: assume that it has
    }
}

void JitKernel::launch_adjoint(const DerivedLaunch& what, const NanCheck* check) const {
    launch_derived(kernel_, what, check);
}

}  // namespace weft::program
