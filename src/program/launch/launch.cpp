#include "program/launch/launch.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "program/host/settings.h"
#include "program/launch/gradient_claim.h"
#include "program/launch/object_check.h"
#include "program/launch/recorded_run.h"
#include "program/launch/strategies.h"
#include "runtime/bytes.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::program {

using transform::Gradient;

namespace {

std::vector<ArrayView> views_of(std::span<const runtime::Array> arrays) {
    std::vector<ArrayView> views;
    for (const runtime::Array& array : arrays) views.push_back(array.view);
    return views;
}

// The user's arguments, with room behind them for the implicit parameters.
std::vector<std::byte> with_room(const Kernel& kernel, const std::byte* block, const KernelFacts& facts) {
    std::vector<std::byte> larger(static_cast<std::size_t>(facts.layout.size_bytes));
    std::memcpy(larger.data(), block, static_cast<std::size_t>(kernel.layout().size_bytes));
    return larger;
}

}  // namespace

// ---- the kernel itself ----

// Empty if only the plain code will do. The options are the present ones: a command may have been recorded with others.
static std::optional<Variant> variant_for(const LaunchStrategy& strategy, Kernel& kernel,
                                          const CompiledKernel& compiled, runtime::Device& device,
                                          const std::byte* block, const Grid& grid) {
    if (compiled.serial) return {};
    Variant variant = kernel.variant_of(device, {grid.dim, 1}, block);
    if (variant.serial || variant.nan_check) return {};
    strategy.choose(variant);
    return variant;
}

// False if the plain code has to run.
static bool launch_by(const LaunchStrategy& strategy, Kernel& kernel, const CompiledKernel& compiled,
                      runtime::Device& device, const std::byte* block, const Grid& grid) {
    const std::unique_ptr<StrategicLaunch> launch = strategy.begin(compiled, device, block, grid, /*has_host=*/true);
    if (!launch) return false;
    const std::optional<Variant> variant = variant_for(strategy, kernel, compiled, device, block, grid);
    if (!variant) return false;
    const KernelFacts& facts = kernel.facts(*variant);
    Block larger(static_cast<std::size_t>(facts.layout.size_bytes));
    std::memcpy(larger.data(), block, static_cast<std::size_t>(kernel.layout().size_bytes));
    if (!launch->fill_implicit_parameters(facts, larger.data())) return false;
    run(kernel.choose(*variant, larger.data()), runtime::current_stream(device), larger.data(), grid);
    return true;
}

std::shared_ptr<const CompiledKernel> code_of_strategy(Kernel& kernel, const CompiledKernel& compiled,
                                                       runtime::Device& device, const std::byte* block,
                                                       const Grid& grid) {
    const LaunchStrategy* const strategy = strategy_of(compiled);
    if (!strategy) return nullptr;
    const Determinism wanted(is_deterministic(kernel.options().deterministic));
    if (!strategy->is_possible(compiled, device, grid)) return nullptr;
    const std::optional<Variant> variant = variant_for(*strategy, kernel, compiled, device, block, grid);
    if (!variant) return nullptr;
    // Copies are packed, and have no memory yet.
    const std::vector<std::byte> larger = with_room(kernel, block, kernel.facts(*variant));
    return std::make_shared<const CompiledKernel>(kernel.choose(*variant, larger.data()));
}

void launch(Kernel& kernel, const CompiledKernel& compiled, runtime::Device& device, const std::byte* block,
            const Grid& grid, const NanCheck* check) {
    if (compiled.description.finds_objects()) check_objects(kernel, compiled, device, block);
    if (const LaunchStrategy* const strategy = strategy_of(compiled)) {
        const Determinism wanted(is_deterministic(kernel.options().deterministic));
        if (launch_by(*strategy, kernel, compiled, device, block, grid)) return;
        runtime::Stream& stream = runtime::current_stream(device);
        runtime::Recording* const recording = check ? nullptr : stream.recording();
        if (recording && recording->runs_nodes())
            return record_run(*recording, compiled, stream, block, grid, /*checks_nan=*/false,
                              code_of_strategy(kernel, compiled, device, block, grid));
    }
    if (!check) return run(compiled, runtime::current_stream(device), block, grid);
    Fault not_finite{};
    run(compiled, runtime::current_stream(device), block, grid, &not_finite);
    check->check("launch()", "kernel '" + kernel.name() + "'", "", writer_of(compiled, not_finite));
}

const CompiledKernel& launch_keeping_atomic_results(Kernel& kernel, runtime::Device& device,
                                                    std::span<const std::int64_t> dims, const std::byte* block,
                                                    std::span<runtime::Array> returned, const NanCheck* check) {
    Variant variant = kernel.variant_of(device, dims, block);
    variant.keeps_atomic_results = true;
    const std::vector<ArrayView> views = views_of(returned);
    const auto filled = [&](const KernelFacts& facts) {
        std::vector<std::byte> larger = with_room(kernel, block, facts);
        point_implicit_parameters(facts, larger.data(), block, views);
        return larger;
    };
    std::vector<std::byte> larger = filled(kernel.facts(variant));
    const CompiledKernel& compiled = kernel.choose(variant, larger.data());
    larger = filled(compiled);
    launch(kernel, compiled, device, larger.data(), make_grid(dims, compiled.tid_rank, kernel.name()), check);
    close_atomic_results(kernel.name(), compiled, returned);
    return compiled;
}

// ---- its derivatives ----

namespace {

const char* api_of(const DerivedLaunch& what) { return what.tangents ? "jvp()" : "launch()"; }

// Numbers of the arguments and their gradients, in memory of the device, both laid out like the arguments.
class NumbersInMemory {
public:
    NumbersInMemory(const Kernel& kernel, const DerivedLaunch& what)
        : device_(*what.device),
          size_bytes_(kernel.layout().size_bytes),
          values_(runtime::allocate(size_bytes_, device_)),
          gradients_(runtime::allocate(size_bytes_, device_)) {
        if (runtime::current_recording(device_))
            runtime::refuse_recording(device_, "launch(adjoint=True)",
                                      "leave gradients of numbers out of adj_inputs, which the host reads at once");
        runtime::write_bytes(device_, values_->data, what.before, size_bytes_);
        runtime::write_bytes(device_, gradients_->data, what.number_gradients, size_bytes_);
    }

    // Points the implicit parameters of the block to them.
    void fill_implicit_parameters(const KernelFacts& facts, std::byte* block) const {
        for (std::size_t i = 0; i < facts.implicit_parameters.size(); ++i) {
            const ir::ImplicitParameter& implicit = facts.implicit_parameters[i];
            if (implicit.kind != ir::ImplicitParameter::Kind::number || implicit.of < 0) continue;
            const std::size_t parameter = facts.own_count() + i;
            ArrayView& view = view_at(block, facts.layout.offsets[parameter]);
            view.data = static_cast<std::byte*>(values_->data) + implicit.of;
            view.grad = static_cast<std::byte*>(gradients_->data) + implicit.of;
            view.shape[0] = 1;
            view.strides[0] = facts.parameter_types[parameter].element().size_bytes();
        }
    }

    // To be called after the launch.
    void read(std::byte* gradients) const {
        runtime::current_stream(device_).synchronize();
        runtime::read_bytes(device_, gradients, gradients_->data, size_bytes_);
    }

private:
    runtime::Device& device_;
    std::int64_t size_bytes_;
    runtime::BufferPtr values_, gradients_;
};

// The arguments of such a launch with its implicit parameters filled in.
std::vector<std::byte> block_of(const Kernel& kernel, const DerivedLaunch& what, const KernelFacts& facts,
                                const std::optional<NumbersInMemory>& numbers = {}) {
    std::vector<std::byte> block = with_room(kernel, what.before, facts);
    std::vector<std::byte> after = with_room(kernel, what.after, facts);
    const std::vector<Type>& types = kernel.types();
    for (std::size_t i = 0; what.tangents && i < types.size(); ++i) {
        const std::int64_t to = facts.layout.offsets[types.size() + i], from = kernel.layout().offsets[i];
        const auto size = static_cast<std::size_t>(types[i].size_bytes());
        for (std::vector<std::byte>* each : {&block, &after})
            std::memcpy(each->data() + to, what.tangents + from, size);
    }
    // Null views if there are no results; the caller has checked that none are read.
    std::vector<ArrayView> returned = views_of(what.returned);
    if (returned.empty()) returned.resize(facts.implicit_parameters.size());
    point_implicit_parameters(facts, block.data(), after.data(), returned);
    if (numbers) numbers->fill_implicit_parameters(facts, block.data());
    return block;
}

void check_atomic_results(const Kernel& kernel, const DerivedLaunch& what, const KernelFacts& facts) {
    if (!what.returned.empty()) return;
    const auto needs = [](const ir::ImplicitParameter& implicit) { return implicit.is_returned() && implicit.of >= 0; };
    if (std::ranges::none_of(facts.implicit_parameters, needs)) return;
    throw UsageError("launch()", "the adjoint of kernel '" + kernel.name() +
                                     "' needs the results of the atomics of the launch, which only a tape keeps. help: "
                                     "launch it in 'with tape:' and call tape.backward()");
}

// Of an adjoint with tangents. Contents from after the launch have no tangent. The gradients of extremes need none;
// custom derivatives may.
void check_after(const Kernel& kernel, const KernelFacts& adjoint) {
    const int own = static_cast<int>(adjoint.effects.size());
    for (const ir::ImplicitParameter& implicit : adjoint.implicit_parameters) {
        if (implicit.kind != ir::ImplicitParameter::Kind::after || implicit.of < own) continue;
        throw UsageError("hvp()", "kernel '" + kernel.name() +
                                      "' has no second derivative here: a derivative that was written for a function "
                                      "of it looks at '" +
                                      kernel.parameter_name(static_cast<std::size_t>(implicit.of - own)) +
                                      "' as it is after the launch. help: pass numbers to that function in place of "
                                      "the array");
    }
}

// Whether each worker gets scattered gradients of its own. The worker that adds an element differs from run to run.
bool wants_private_gradients(const Variant& variant, const KernelFacts& adjoint, const std::byte* block,
                             std::int64_t threads, const runtime::Device& device) {
    if (variant.serial || variant.nan_check || is_deterministic(std::nullopt)) return false;
    std::vector<runtime::GradientView> scattered;
    for (const auto& [parameter, additions] : adjoint.scattered) {
        const auto at = static_cast<std::size_t>(parameter);
        scattered.push_back({&view_at(block, adjoint.layout.offsets[at]), adjoint.parameter_types[at], additions});
    }
    return device.should_privatise(scattered, threads);
}

Variant variant_of(const Kernel& kernel, const DerivedLaunch& what) {
    Variant variant = kernel.derived_variant_of(*what.device, what.dims, what.before);
    variant.keeps_atomic_results = !what.of_adjoint() && !what.returned.empty();
    return variant;
}

}  // namespace

const CompiledKernel& launch_derived(Kernel& kernel, const DerivedLaunch& what, const NanCheck* check) {
    const Determinism wanted(is_deterministic(kernel.options().deterministic));
    Variant variant = variant_of(kernel, what);
    const KernelFacts& facts = kernel.facts(variant, {}, what.derivation);
    check_atomic_results(kernel, what, facts);
    Grid grid = make_grid(what.dims, facts.tid_rank, kernel.name());
    std::optional<NumbersInMemory> numbers;
    if (!what.derivation.numbers.empty()) numbers.emplace(kernel, what);
    std::vector<std::byte> block = block_of(kernel, what, facts, numbers);
    const LaunchLayout arranged = launch_layout(facts, block.data(), what.of_adjoint(), variant.gpu > 0);
    if (!what.tangents) {
        variant.single = grid.count == 1;
        variant.private_gradients =
            arranged.noalias && wants_private_gradients(variant, facts, block.data(), grid.count, *what.device);
    }
    // The kernel's strategy has a say if threads may run in any order.
    std::unique_ptr<StrategicLaunch> strategic;
    std::vector<std::byte> its_block;
    if (const LaunchStrategy* const strategy = variant.serial ? nullptr : strategy_of(facts)) {
        strategic = strategy->begin(kernel.facts(variant, arranged, what.derivation), *what.device, block.data(), grid,
                                    /*has_host=*/true);
        if (strategic) {
            Variant its_variant = variant;
            strategy->choose(its_variant);
            const KernelFacts& its_facts = kernel.facts(its_variant, arranged, what.derivation);
            its_block = block_of(kernel, what, its_facts, numbers);
            if (strategic->fill_implicit_parameters(its_facts, its_block.data()))
                variant = its_variant;
            else
                strategic = nullptr;
        }
    }
    const CompiledKernel& compiled = kernel.compiled(variant, arranged, what.derivation);
    if (variant.gpu > 0 && compiled.description.cuda().asks_blocks) {
        grid.block_dim = what.block_dim;
        grid.max_blocks = what.max_blocks;
    }
    if (arranged.huge) require_narrow_extents(compiled, block.data(), kernel.name());
    if (what.tangents && what.of_adjoint()) check_after(kernel, compiled);
    if (strategic)
        block = std::move(its_block);
    else if (arranged.index() != 0)
        block = block_of(kernel, what, compiled, numbers);
    if (compiled.description.finds_objects()) check_objects(kernel, compiled, *what.device, what.before);
    std::optional<GradientClaim> claim;
    if (what.of_adjoint()) claim.emplace(gradients_in(compiled, block.data()));
    const std::vector<runtime::BufferPtr> copies = make_copies(compiled, block.data(), *what.device);
    Fault not_finite{};
    run(compiled, runtime::current_stream(*what.device), block.data(), grid, check ? &not_finite : nullptr);
    if (strategic) strategic->add_gradients(block.data());
    if (numbers) numbers->read(what.number_gradients);
    if (variant.keeps_atomic_results) close_atomic_results(kernel.name(), compiled, what.returned);
    if (check)
        check->check(api_of(what), (what.of_adjoint() ? "the adjoint of kernel '" : "kernel '") + kernel.name() + "'",
                     what.of_adjoint() ? "the gradient of " : "", writer_of(compiled, not_finite));
    return compiled;
}

bool needs_launch(Kernel& kernel, const DerivedLaunch& what) {
    const Variant variant = variant_of(kernel, what);
    const KernelFacts* facts = &kernel.facts(variant, {}, what.derivation);
    const std::vector<std::byte> block = block_of(kernel, what, *facts);
    const LaunchLayout arranged = launch_layout(*facts, block.data(), what.of_adjoint(), variant.gpu > 0);
    if (arranged.index() != 0) facts = &kernel.facts(variant, arranged, what.derivation);
    if (what.of_adjoint()) check_after(kernel, *facts);
    return std::ranges::any_of(facts->implicit_parameters, [](const ir::ImplicitParameter& implicit) {
        return implicit.of >= 0 && implicit.kind != ir::ImplicitParameter::Kind::copy;
    });
}

}  // namespace weft::program
