#include "embed/recorded.h"

#include <algorithm>
#include <utility>

#include "embed/shown_arrays.h"
#include "program/kernel/grid.h"
#include "support/error.h"

namespace weft {

using program::BlockArray;
using program::Variable;

GivenArguments::GivenArguments(const Access::KernelImplementation& kernel, std::span<const std::int64_t> dim,
                               std::span<const Argument> arguments)
    : device(kernel.device(arguments)), dim(dim), block(kernel.block(arguments)) {
    program::make_grid(dim, kernel.dense.tid_rank, kernel.name());
    for (const BlockArray& block_array : kernel.signature().arrays) {
        const ArrayView& view = program::view_at(block.data(), block_array.offset);
        std::shared_ptr<const Variable>& given = arrays.emplace_back();
        if (block_array.is_parameter)
            given = Access::variable(std::get<Array>(Access::value(arguments[block_array.parameter])));
        else if (view.data)
            given = std::make_shared<const Variable>(shown_array(view, block_array.type));
    }
}

namespace {

std::vector<program::RecordedLaunch::Argument> arguments_of(const GivenArguments& given) {
    std::vector<program::RecordedLaunch::Argument> found;
    for (const auto& array : given.arrays) found.push_back({array.get(), nullptr});
    return found;
}

}  // namespace

Recorded::Recorded(std::shared_ptr<const Access::KernelImplementation> kernel, const GivenArguments& given)
    : RecordedLaunch(*kernel, given.device, given.block.data(), given.dim, arguments_of(given)),
      kernel_(std::move(kernel)),
      kept_(given.arrays) {
    const auto has_gradient = [&](const BlockArray& block_array) {
        return program::view_at(given.block.data(), block_array.offset).grad != nullptr;
    };
    if (!kernel_->dense_adjoint && std::ranges::any_of(signature().arrays, has_gradient))
        throw UsageError(
            "Tape::launch()",
            "kernel '" + kernel_->name() +
                "' has an argument with a gradient, and the file has no adjoint of it: " + kernel_->no_adjoint);
    find_needs(kernel_->dense, given.block.data(), /*is_seen=*/true);
    find_nested();
}

void Recorded::find_nested() {
    std::vector<Nested> nested;
    within_.reserve(kept_.size());
    for (std::size_t i = 0; i < kept_.size(); ++i) {
        const auto parameter = static_cast<std::size_t>(signature().arrays[i].parameter);
        if (!kept_[i] || !(needs().writes_within[parameter] || needs().contents[parameter].within)) continue;
        Nested& one = nested.emplace_back();
        one.parameter = parameter;
        for (const Variable& array : within_.emplace_back(arrays_within(kept_[i]->array))) one.arrays.push_back(&array);
    }
    set_nested(std::move(nested));
}

void Recorded::backward(const Backward& backward) {
    const bool has_late_gradients = !needs().has_adjoint && std::ranges::any_of(kept_, [](const auto& array) {
        return array && array->requires_grad;
    });
    const bool reads_within = kernel_->dense_adjoint && std::ranges::any_of(kernel_->needs_with_gradients().contents,
                                                                            &transform::Contents::within);
    if (has_late_gradients && (!kernel_->dense_adjoint || reads_within))
        throw UsageError("Tape::backward()", "an argument of kernel '" + kernel_->name() +
                                                 "' got its gradient after it was recorded. help: call "
                                                 "require_gradient() before");
    RecordedLaunch::backward(backward);
}

// Elements hold addresses, which the adjoint would follow to the present contents.
std::vector<runtime::BufferPtr> Recorded::show_nested(std::byte*, std::byte*) const {
    for (const Nested& nested : this->nested())
        for (const program::SavedPrimalPtr& primal : nested.primals)
            if (primal->copy)
                throw UsageError("Tape::backward()",
                                 "kernel '" + kernel_->name() + "' reads an array of shape " +
                                     runtime::shape_text(primal->of->array.shape()) +
                                     " that elements of its argument '" +
                                     signature().parameter_names[nested.parameter] +
                                     "' lead to, and a later launch has overwritten it. help: write to another array");
    return {};
}

}  // namespace weft
