#include "program/tape/launch_needs.h"

#include <algorithm>
#include <utility>

#include "ir/typing.h"
#include "program/host/settings.h"
#include "support/error.h"

namespace weft::program {

using transform::Gradient;

namespace {

std::vector<Gradient> present_gradients(std::span<const std::uint8_t> arguments) {
    std::vector<Gradient> found;
    for (const std::uint8_t argument : arguments)
        found.push_back(argument & kHasGradient ? Gradient::used : Gradient::none);
    return found;
}

// Gradients that may exist by the time of the backward pass: the present ones, and those of outputs that may get one
// later because some input has one.
std::vector<Gradient> expected_gradients(const KernelFacts& facts, std::span<const std::uint8_t> arguments,
                                         std::vector<Gradient> gradients, bool leads_on) {
    const bool any =
        leads_on || std::ranges::any_of(gradients, [](Gradient gradient) { return gradient != Gradient::none; });
    for (std::size_t i = 0; any && i < gradients.size(); ++i) {
        const Type type = facts.parameter_types[i];
        const bool may_get_one = arguments[i] & kIsArray && type.is_array() && ir::is_smooth(type.element());
        if (facts.effects[i].writes_itself && may_get_one && gradients[i] == Gradient::none)
            gradients[i] = Gradient::used;
    }
    return gradients;
}

LaunchNeeds find_needs(Kernel& kernel, Variant variant, LaunchNeeds::Key key) {
    const KernelFacts& facts = kernel.facts(variant);
    const LaunchLayout arranged{.noalias = !key.overlapping};
    const std::size_t count = facts.effects.size();
    std::vector<bool> leads_on;  // whether elements of it hold arrays
    for (const Type type : kernel.types()) leads_on.push_back(ir::holds_array(type.is_array() ? type.element() : type));
    const auto writes_gradients = [&](const std::vector<Gradient>& there) {
        for (std::size_t i = 0; i < count; ++i)
            if (facts.effects[i].writes && (leads_on[i] || there[i] != Gradient::none)) return true;
        return false;
    };

    LaunchNeeds needs;
    const bool any_leads_on =
        std::ranges::find(leads_on, true) != leads_on.end() ||
        std::ranges::any_of(key.arguments, [](std::uint8_t argument) { return argument & kLeadsToGradient; });
    std::vector<Gradient> gradients = present_gradients(key.arguments);
    const std::vector<Gradient> expected = expected_gradients(facts, key.arguments, gradients, any_leads_on);
    const KernelFacts* adjoint = nullptr;
    const bool may_have_adjoint = kernel.options().enable_backward;
    if (may_have_adjoint && expected != gradients && writes_gradients(expected)) {
        // Only gradients that exist already make a missing derivative an error, or have atomics recorded.
        try {
            adjoint = &kernel.facts(variant, arranged, {expected, {}});
            if (!adjoint->returned.empty()) adjoint = nullptr;
        } catch (const CompileError&) {
        }
    }
    if (adjoint)
        gradients = expected;
    else if (may_have_adjoint && writes_gradients(gradients))
        adjoint = &kernel.facts(variant, arranged, {gradients, {}});

    if (adjoint) needs.returned = adjoint->returned;
    for (std::size_t i = 0; i < count; ++i) {
        needs.contents.push_back(adjoint ? adjoint->contents[i] : transform::Contents());
        needs.reads.push_back(facts.effects[i].reads);
        needs.writes.push_back(facts.effects[i].writes_itself);
        needs.writes_within.push_back(facts.effects[i].writes_within);
        const bool may_be_overwritten = kernel.types()[i].is_array() && arranged.noalias;
        needs.overwritten.push_back(may_be_overwritten ? facts.overwritten[i] : std::vector<int>());
    }
    needs.gradients = std::move(gradients);
    needs.tid_rank = facts.tid_rank;
    needs.has_adjoint = adjoint != nullptr;
    needs.is_left_out = !may_have_adjoint && writes_gradients(expected);
    needs.key = std::move(key);
    return needs;
}

}  // namespace

std::shared_ptr<const LaunchNeeds> launch_needs(Kernel& kernel, const runtime::Device& device, const KernelFacts& facts,
                                                std::span<const std::int64_t> dims, const std::byte* block,
                                                std::span<const std::uint8_t> arguments) {
    const Variant variant = kernel.derived_variant_of(device, dims, block);
    const bool overlapping = gradients_overlap(facts, block);
    const std::int64_t loop_bytes = settings().gradient_loop_bytes;
    for (const auto& known : kernel.known_needs()) {
        const LaunchNeeds::Key& key = known->key;
        if (key.variant == variant.index() && key.loop_bytes == loop_bytes && key.overlapping == overlapping &&
            std::ranges::equal(key.arguments, arguments))
            return known;
    }
    auto made = std::make_shared<const LaunchNeeds>(
        find_needs(kernel, variant, {variant.index(), loop_bytes, overlapping, {arguments.begin(), arguments.end()}}));
    kernel.known_needs().push_back(made);
    return made;
}

bool overwrites(const LaunchNeeds& needs, std::size_t parameter, const ArrayView& view, const Grid& grid) {
    const std::vector<int>& axes = needs.overwritten[parameter];
    for (std::size_t i = 0; i < axes.size(); ++i)
        if (view.shape[i] != grid.dim[axes[i]]) return false;
    return !axes.empty();
}

}  // namespace weft::program
