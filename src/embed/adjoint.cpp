// The adjoints of kernels of a bundle: there is one for gradients of all arrays of floats.
#include <algorithm>
#include <vector>

#include "embed/access.h"
#include "program/kernel/launch_layout.h"
#include "program/launch/gradient_claim.h"
#include "program/launch/implicit_parameters.h"
#include "program/launch/run.h"

namespace weft {

using transform::Gradient;

void Kernel::Implementation::find_needs() {
    program::LaunchNeeds needs{};
    needs.tid_rank = dense.tid_rank;
    for (const ParameterEffects& effects : dense.effects) {
        needs.contents.emplace_back();
        needs.gradients.push_back(Gradient::none);
        needs.reads.push_back(effects.reads);
        needs.writes.push_back(effects.writes_itself);
        needs.writes_within.push_back(effects.writes_within);
        needs.overwritten.emplace_back();
    }
    without_gradients_ = std::make_shared<const program::LaunchNeeds>(needs);
    if (dense_adjoint) {
        needs.has_adjoint = true;
        needs.returned = returned;
        for (std::size_t i = 0; i < needs.contents.size(); ++i) {
            if (signature().is_smooth_array(i)) needs.gradients[i] = Gradient::used;
            // The adjoint that will run is known only when it runs: all that any of them reads is saved.
            for (const program::KernelFacts* adjoint :
                 {static_cast<const program::KernelFacts*>(&*dense_adjoint),
                  static_cast<const program::KernelFacts*>(&*general_adjoint), &huge_adjoint->facts()}) {
                needs.contents[i].before |= adjoint->contents[i].before;
                needs.contents[i].after |= adjoint->contents[i].after;
                needs.contents[i].within |= adjoint->contents[i].within;
            }
        }
    }
    with_gradients_ = std::make_shared<const program::LaunchNeeds>(std::move(needs));
}

std::shared_ptr<const program::LaunchNeeds> Kernel::Implementation::needs(const Launch& launch,
                                                                          const program::KernelFacts&,
                                                                          std::span<const std::uint8_t>) const {
    const bool has_gradients = std::ranges::any_of(signature().arrays, [&](const program::BlockArray& block_array) {
        return program::view_at(launch.block, block_array.offset).grad != nullptr;
    });
    return has_gradients ? with_gradients_ : without_gradients_;
}

namespace {

// Gradients that no array has and that the adjoint adds to.
std::vector<program::Variable> add_scratch_gradients(const program::KernelSignature& signature, std::byte* block,
                                                     runtime::Device& device) {
    std::vector<program::Variable> scratch;
    for (const program::BlockArray& block_array : signature.arrays) {
        ArrayView& view = program::view_at(block, block_array.offset);
        if (!block_array.is_parameter || !view.data || view.grad) continue;
        if (!signature.is_smooth_array(static_cast<std::size_t>(block_array.parameter))) continue;
        program::Variable& made = scratch.emplace_back();
        made.array.dtype = block_array.type.element();
        made.array.ndim = block_array.ndim;
        made.array.device = &device;
        made.array.view = view;
        make_gradient(made);
        view.grad = made.array.view.grad;
    }
    return scratch;
}

// The arguments, followed by the values of the compiler's own parameters.
std::vector<std::byte> with_implicit_parameters(const program::CompiledKernel& adjoint,
                                                std::span<const std::byte> before, std::span<const std::byte> after,
                                                std::span<const ArrayView> returned) {
    const auto size = static_cast<std::size_t>(adjoint.layout.size_bytes);
    std::vector<std::byte> block(before.begin(), before.end()), later(after.begin(), after.end());
    block.resize(size);
    later.resize(size);
    program::point_implicit_parameters(adjoint, block.data(), later.data(), returned);
    return block;
}

}  // namespace

void Kernel::Implementation::launch_adjoint(const program::DerivedLaunch& what, const program::NanCheck*) const {
    const auto size = static_cast<std::size_t>(signature().layout.size_bytes);
    std::vector<std::byte> before(what.before, what.before + size);
    const std::span after(what.after, size);
    const std::vector<program::Variable> scratch = add_scratch_gradients(signature(), before.data(), *what.device);
    std::vector<ArrayView> kept;
    for (const runtime::Array& one : what.returned) kept.push_back(one.view);
    const program::CompiledKernel* adjoint = &*dense_adjoint;
    std::vector<std::byte> block = with_implicit_parameters(*adjoint, before, after, kept);
    const program::LaunchLayout layout =
        program::launch_layout(*adjoint, block.data(), /*with_gradients=*/true, is_for_gpus());
    if (layout.index() != 0 || program::has_null(signature().arrays, block.data())) {
        adjoint = layout.huge ? &huge_adjoint->code() : &*general_adjoint;
        block = with_implicit_parameters(*adjoint, before, after, kept);
        check_extents(*adjoint, block.data(), "Tape::backward()");
    }
    const program::GradientClaim claim(program::gradients_in(*adjoint, block.data()));
    const std::vector<runtime::BufferPtr> copies = program::make_copies(*adjoint, block.data(), *what.device);
    program::run(*adjoint, what.device->default_stream(), block.data(),
                 program::make_grid(what.dims, adjoint->tid_rank, name()));
}

}  // namespace weft
