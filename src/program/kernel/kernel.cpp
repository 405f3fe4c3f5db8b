#include "program/kernel/kernel.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "codegen/codegen.h"
#include "jit/disk_cache.h"
#include "jit/hash.h"
#include "program/host/host.h"
#include "program/host/settings.h"
#include "program/kernel/grid.h"
#include "program/kernel/reuse.h"
#include "runtime/cuda_devices.h"
#include "support/error.h"
#include "transform/tiles/lower_lanes.h"

namespace weft::program {

namespace {

// Logs a compilation and the reasons why code runs without lanes; a warning, once, if the cache folder cannot be
// written.
void log_compile(const CompiledKernel& compiled, const CompileOptions& options) {
    using Cache = CompiledKernel::Cache;
    const auto is_logged = [](LogLevel level) { return host().log && static_cast<int>(level) >= settings().log_level; };
    const KernelEntry& entry = compiled.description;
    if (is_logged(LogLevel::debug)) {
        char took[32];
        std::snprintf(took, sizeof took, "%.1f ms", compiled.compile_ms);
        const Target& target = compiled.executable->binary().target;
        const std::string lanes = std::to_string(entry.lanes()) + (entry.lanes() == 1 ? " lane" : " lanes");
        const std::string how = target.kind == Target::Kind::cpu ? lanes : "for " + target.processor;
        const char* const done = compiled.cache == Cache::found ? "loaded from the cache" : "compiled";
        const char* const order = options.grid_order ? ", threads in the order of a hash grid" : "";
        host().log(LogLevel::debug, "kernel '" + entry.name + "' " + done + " in " + took + ", " + how + order);
        for (const std::string& remark : compiled.remarks)
            host().log(LogLevel::debug, "kernel '" + entry.name + "': " + remark);
    }
    static bool has_warned = false;
    if (compiled.cache == Cache::refused && !has_warned) {
        has_warned = true;
        if (!is_logged(LogLevel::warning)) return;
        const std::filesystem::path folder = jit::cache_folder(settings().cache_folder);
        const std::string problem = jit::DiskCache(folder).problem();
        host().log(LogLevel::warning, "the folder of the kernel cache, " + folder.string() + ", " +
                                          (problem.empty() ? "cannot be written" : problem) +
                                          ": every process compiles its kernels anew. help: " +
                                          (problem.empty() ? "" : "make it yours alone (chmod go-w), or ") +
                                          "set wp.config.kernel_cache_dir or the environment variable WARP_CACHE_PATH");
    }
}

}  // namespace

static std::vector<std::string> parameter_names(const sema::FunctionSource& source) {
    std::vector<std::string> names;
    for (const auto& parameter : source.tree->parameters) names.push_back(parameter.name);
    return names;
}

Kernel::Kernel(std::string name, std::shared_ptr<const sema::FunctionSource> source, std::vector<Type> types,
               KernelOptions options, sema::Blocks blocks)
    : signature_(std::move(name), std::move(types), parameter_names(*source)),
      source_(std::move(source)),
      options_(std::move(options)),
      blocks_(std::move(blocks)) {}

// ---- options ----

// Faults of these devices name the line.
static bool is_emulated(const runtime::Device& device) { return device.ordinal >= 0 && device.gpu()->is_emulated; }

Variant Kernel::configured(const runtime::Device& device) const {
    const Settings& set = settings();
    Variant variant;
    variant.debug = options_.debug.value_or(set.debug);
    variant.fast_math = options_.fast_math.value_or(set.fast_math);
    variant.line_info = options_.line_info.value_or(set.line_info || variant.debug || is_emulated(device));
    variant.nan_check = set.verify_fp;
    variant.gpu = device.ordinal + 1;
    variant.notes_accesses = set.notes_accesses && variant.debug && variant.gpu == 0;
    variant.serial = set.serial || (variant.debug && variant.gpu == 0);
    return variant;
}

Variant Kernel::variant_of(const runtime::Device& device, std::span<const std::int64_t> dims,
                           const std::byte* block) const {
    Variant variant = configured(device);
    variant.launch_rank = launch_rank(dims);
    variant.null_arrays = has_null(signature_.arrays, block);
    variant.short_rows = variant.gpu == 0 && variant.launch_rank > 1 &&
                         dims[static_cast<std::size_t>(variant.launch_rank) - 1] <= transform::kShortRow;
    return variant;
}

Variant Kernel::derived_variant_of(const runtime::Device& device, std::span<const std::int64_t> dims,
                                   const std::byte* block) const {
    Variant variant = variant_of(device, dims, block);
    variant.short_rows = false;
    return variant;
}

int Kernel::optimization_level(Variant variant) const {
    if (options_.optimization_level) return *options_.optimization_level;
    return settings().optimization_level.value_or(variant.debug ? 0 : 3);
}

sema::Options Kernel::sema_options(bool debug) const {
    sema::Options result;
    result.debug = debug;
    result.max_unroll = options_.max_unroll.value_or(settings().max_unroll);
    result.blocks = blocks_;
    return result;
}

static void take_cuda_options(const KernelOptions& from, CompileOptions& to) {
#define WEFT_OF_CUDA(type, name, ...) to.name = from.name;
#include "ir/specialization.def"
}

CompileOptions Kernel::compile_options(Variant variant, LaunchLayout launch_layout, const Derivation& derivation,
                                       const Target* target) {
    CompileOptions result(variant, launch_layout);
    if (target)
        result.target = *target;
    else if (variant.gpu > 0)
        result.target = *runtime::cuda_device(variant.gpu - 1).target();
    const bool is_gpu = result.target.kind == Target::Kind::cuda;
    result.fuse_fp = options_.fuse_fp.value_or(true);
    result.optimization_level = optimization_level(variant);
    result.lanes = variant.single || is_gpu || launch_layout.huge ? 1 : options_.lanes.value_or(0);
    result.deterministic = options_.deterministic;
    if (is_gpu) {
        take_cuda_options(options_, result);
        if (options_.external_parameters)
            throw UsageError("launch()",
                             "kernel '" + signature_.name +
                                 "' has entry_point_abi='external_constant_params', and Weft's kernels take their "
                                 "arguments as parameters. help: entry_point_abi='warp'",
                             ErrorCategory::value);
    }
    const int names = code(variant.debug).tid_rank(), rank = transform::fitted_rank(names, variant.launch_rank);
    result.launch_rank = rank == names ? 0 : rank;
    const bool in_lanes =
        result.lanes > 1 || (result.lanes == 0 && codegen::has_quick_lanes(jit::describe(result.target)));
    // An adjoint gains by neighbour rows with any number of lanes: it visits the items once, and not three times.
    const bool gains_by_neighbour_rows = (in_lanes && !variant.serial) || !derivation.gradients.empty();
    result.neighbour_rows = gains_by_neighbour_rows && !variant.debug && !is_gpu;
    // Functions that remain calls do not always know the thread.
    result.keeps_calls = result.lanes <= 1 && !variant.null_arrays && !variant.notes_accesses;
    result.derivation = derivation;
    result.stack_bytes = settings().gradient_loop_bytes;
    result.stack_slots = jit::stack_slots(result.target);
    result.cache = settings().cache_kernels;
    result.cache_folder = settings().cache_folder;
    result.host_compiler = settings().host_compiler;
    return result;
}

// ---- from the source to code ----

static transform::LaneOptions lane_options(const sema::Options& options) {
    transform::LaneOptions result{.lanes = options.blocks.lanes, .debug = options.debug};
    if (!options.blocks.threads.empty()) {
        result.threads = 1;
        for (const std::int64_t extent : options.blocks.threads) result.threads *= extent;
    }
    return result;
}

// A closure of the same factory may have been analysed with the same captured values.
KernelCode& Kernel::code(bool debug) {
    std::shared_ptr<KernelCode>& slot = code_[debug];
    if (slot) return *slot;
    const sema::Options options = sema_options(debug);
    const std::string key = reuse_key(*source_, signature_.types, options);
    std::vector<std::shared_ptr<sema::Environment>> asked;
    slot = find_code(source_, key, asked);
    if (!slot) {
        QuestionLog log(source_);
        std::unique_ptr<ir::Module> analysed = sema::analyze(log.kernel(), options, signature_.types);
        const bool asks_for_blocks = transform::asks_for_blocks(*analysed);
        if (options.blocks.lanes > 1) transform::lower_lanes(*analysed, lane_options(options));
        auto made = std::make_shared<KernelCode>(std::move(analysed), asks_for_blocks);
        asked = log.asked();
        log.remember(key, made);
        slot = std::move(made);
    }
    tid_names_ = slot->tid_rank();
    for (const auto& environment : asked)
        if (auto watch = environment ? environment->watch() : nullptr) watches_.push_back(std::move(watch));
    return *slot;
}

Kernel::Specialization& Kernel::specialization(Variant variant, const Derivation& derivation) {
    if (!options_.enable_backward && !derivation.gradients.empty())
        throw UsageError("kernel '" + signature_.name + "'",
                         "was declared with enable_backward=False, and a gradient is asked for. help: leave "
                         "enable_backward out, or do not record it: wp.launch(..., record_tape=False)");
    std::unique_ptr<Specialization>& slot =
        specializations_[{variant.index(), settings().gradient_loop_bytes, derivation}];
    if (!slot) slot = std::make_unique<Specialization>(variant.gpu);
    const bool is_plain = derivation == Derivation();
    if (is_plain && std::ranges::none_of(plain_, [&](const auto& one) { return one.first == variant.index(); }))
        plain_.emplace_back(variant.index(), slot.get());
    return *slot;
}

const KernelFacts& Kernel::new_facts(Specialization& into, Variant variant, LaunchLayout launch_layout,
                                     const Derivation& derivation) {
    const CompileOptions options = compile_options(variant, launch_layout, derivation);
    const std::shared_ptr<KernelCode> from = code_[variant.debug];
    auto made = from->facts(options.passes());
    auto& to = into.facts[launch_layout.index()];
    if (!to) to = std::move(made);  // else another thread was quicker
    return *to;
}

const CompiledKernel& Kernel::newly_compiled(Specialization& into, Variant variant, LaunchLayout launch_layout,
                                             const Derivation& derivation) {
    const CompileOptions options = compile_options(variant, launch_layout, derivation);
    const std::shared_ptr<KernelCode> from = code_[variant.debug];
    auto made = from->find(options);
    was_shared_ = made != nullptr;
    if (!made) {
        made = from->compiled(options);
        log_compile(*made, options);
    }
    auto& to = into.compiled[launch_layout.index()];
    if (!to) to = std::move(made);
    return *to;
}

const KernelFacts& Kernel::facts(Variant variant, LaunchLayout launch_layout, const Derivation& derivation) {
    Specialization& one = specialization(variant, derivation);
    const auto& found = one.facts[launch_layout.index()];
    return found ? *found : new_facts(one, variant, launch_layout, derivation);
}

const CompiledKernel& Kernel::compiled(Variant variant, LaunchLayout launch_layout, const Derivation& derivation) {
    Specialization& one = specialization(variant, derivation);
    const auto& found = one.compiled[launch_layout.index()];
    return found ? *found : newly_compiled(one, variant, launch_layout, derivation);
}

const CompiledKernel& Kernel::choose(Variant variant, const std::byte* block) {
    Specialization& one = plain(variant);
    const KernelFacts& known = one.facts[0] ? *one.facts[0] : new_facts(one, variant, {}, {});
    const LaunchLayout arranged = launch_layout(known, block, /*with_gradients=*/false, variant.gpu > 0);
    const auto& found = one.compiled[arranged.index()];
    const CompiledKernel& chosen = found ? *found : newly_compiled(one, variant, arranged, {});
    if (arranged.huge) require_narrow_extents(chosen, block, signature_.name);
    return chosen;
}

std::vector<int> Kernel::compiled_for() const {
    std::set<int> found;
    for (const auto& [at, specialization] : plain_) {
        const auto is_there = [](const auto& compiled) { return compiled != nullptr; };
        if (std::ranges::any_of(specialization->compiled, is_there)) found.insert(specialization->gpu);
    }
    return {found.begin(), found.end()};
}

// ---- change ----

// Everything of the analysed kernel, and the options that shape code, but neither its name nor its lines.
Digest Kernel::hash() {
    const Variant variant = configured();
    CompileOptions shaping = compile_options(variant, {}, {});
    take_cuda_options(options_, shaping);
    std::string text = ir::print(code(variant.debug).analysed(), /*names=*/false);
    const auto add = [&](std::optional<int> option) { text += "\n" + std::to_string(option.value_or(-1)); };
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) \
    WEFT_ONLY_##code(add(shaping.name);) WEFT_ONLY_##launches(add(shaping.name);)
#include "ir/specialization.def"
    add(shaping.optimization_level);
    add(options_.enable_backward);
    return jit::hash_bytes(text);
}

std::string Kernel::changed_name() {
    for (const auto& watch : watches_) {
        std::string text = watch->changed();
        if (text.empty()) continue;
        watches_.clear();
        return text;
    }
    return {};
}

void Kernel::set_options(const KernelOptions& changed) {
    options_ = changed;
    forget();
}

void Kernel::forget() {
    for (auto& code : code_)
        if (code) retired_code_.push_back(std::move(code));
    code_ = {};
    plain_.clear();
    known_needs_.clear();
    watches_.clear();
    for (auto& [key, made] : specializations_) retired_.push_back(std::move(made));
    specializations_.clear();
}

}  // namespace weft::program
