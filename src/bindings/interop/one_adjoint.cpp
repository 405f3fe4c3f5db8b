#include "bindings/interop/one_adjoint.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "program/launch/launch.h"
#include "program/tape/launch_needs.h"
#include "program/tape/recorded_launch.h"
#include "program/tape/tape.h"
#include "program/tape/tape_start.h"
#include "runtime/array_copies.h"
#include "runtime/device.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::bindings {

void throw_without_gradient(const PyKernel& kernel, std::string_view api) {
    throw UsageError(std::string(api),
                     "kernel '" + kernel.key + "' has no gradient: it was made with enable_backward=False");
}

void run_one_adjoint(PyKernel& kernel, runtime::Device& device, const program::CompiledKernel& compiled,
                     const program::Grid& grid, const Dimensions& dims, std::byte* block,
                     std::vector<AdjointArray>& arrays, std::string_view api) {
    std::optional<runtime::WithoutRecording> without;
    if (device.is_host_memory) without.emplace();  // frameworks need the gradients now
    program::Kernel& core = kernel.core();
    std::vector<program::RecordedLaunch::Argument> given;
    given.reserve(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        program::view_at(block, core.arrays()[i].offset) = arrays[i].variable.array.view;
        given.push_back({&arrays[i].variable, nullptr});
    }
    auto entry = std::make_shared<program::RecordedLaunch>(kernel.differentiable(), device, block, dims.span(),
                                                           std::move(given));
    entry->find_needs(compiled, block, /*is_seen=*/true);
    const program::LaunchNeeds& needs = entry->needs();
    if (needs.is_left_out) throw_without_gradient(kernel, api);
    const bool runs_again = !needs.returned.empty() ||
                            std::ranges::any_of(needs.contents, [](const auto& contents) { return contents.after; });
    std::vector<program::SuppliedGradient> supplied;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        if (!arrays[i].is_output) continue;
        program::Variable& variable = arrays[i].variable;
        const bool reads_contents = needs.contents[static_cast<std::size_t>(core.arrays()[i].parameter)].before;
        if (reads_contents || (runs_again && entry->overwritten(variable) < 0)) runtime::zero(variable.array);
        if (!variable.requires_grad) continue;
        if (auto gradient = program::supply_or_copy(variable, *entry)) supplied.push_back(*std::move(gradient));
    }
    program::Tape tape;
    tape.record(entry);
    if (!entry->returned.empty())
        program::launch_keeping_atomic_results(core, device, dims.span(), block, entry->returned);
    else if (!entry->after().empty())
        program::launch(core, compiled, device, block, grid);
    tape.reverse(0, supplied);
}

}  // namespace weft::bindings
