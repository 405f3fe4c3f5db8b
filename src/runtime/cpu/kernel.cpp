#include "runtime/cpu/kernel.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "runtime/cpu/accesses.h"
#include "runtime/cpu/atomics_lock.h"
#include "runtime/cpu/deferred.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/preemption.h"
#include "runtime/cpu/private_gradients.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/handles.h"
#include "runtime/timing.h"
#include "support/float_environment.h"

namespace weft::runtime {

CpuKernel::CpuKernel(const KernelEntry& description, KernelEntryPoint entry, const CodeRange& code)
    : LoadedKernel(description, description.cpu().cost, description.cpu().ordered, description.cpu().has_long_loops),
      entry_(entry),
      code_(code) {}

Interrupts* CpuKernel::preempts(Interrupts& interrupts) const {
    return may_be_long() && interrupts.can_stop() ? &interrupts : nullptr;
}

namespace {

// An entry that sets the former objects on each thread.
struct FindingEntry {
    KernelEntryPoint entry;
    const void* arguments;
    const spatial::PreviousObjects& objects;

    static void run(const void* self, const LaunchContext* context, std::int64_t begin, std::int64_t end) {
        const auto& [entry, arguments, objects] = *static_cast<const FindingEntry*>(self);
        const spatial::ThreadSnapshotScope here(objects);
        run_chunk(entry, arguments, *context, begin, end);
    }
};

}  // namespace

// An exclusive launch runs on one thread. That loses nothing if other threads would not be used, and gains if they
// could not make up for the cost of atomics. It blocks other launches and does not poll for interrupts, so it has to be
// short. Its time depends on the location of the data, so it is measured. Before the first measurement, the estimate is
// scaled by its factor for data in the cache.
bool CpuKernel::is_quicker_exclusive(std::int64_t threads) const {
    constexpr double kNobodyAskedNs = 30'000, kShortNs = 100'000, kShortOnOneThreadNs = 2'000'000, kInCache = 0.3;
    const CpuEntry& entry = description().cpu();
    if (entry.cost_exclusive <= 0.0) return false;
    const double measured = cost_exclusive_ns_.load(std::memory_order_relaxed);
    const double each = measured > 0.0 ? measured : kInCache * entry.cost_exclusive;
    const double alone = each * static_cast<double>(threads);
    const int workers = cpu_threads();
    if (alone < kNobodyAskedNs) return true;
    const double shared = alone * entry.cost / entry.cost_exclusive / workers;
    if (workers == 1 ? alone < kShortOnOneThreadNs : alone < kShortNs && alone < shared) return true;
    // A measurement may have been an outlier: it decays, so that exclusive launches are tried again.
    constexpr double kForgotten = 0.99;
    if (measured > 0.0) cost_exclusive_ns_.store(measured * kForgotten, std::memory_order_relaxed);
    return false;
}

// Runs an exclusive launch on this thread and updates the measured cost.
void CpuKernel::run_exclusive(KernelEntryPoint entry, const void* arguments, LaunchContext& context,
                              std::int64_t count) const {
    constexpr double kWorthMeasuringNs = 5'000;
    context.exclusive = true;
    const double estimated = description().cpu().cost_exclusive;
    if (estimated * static_cast<double>(count) < kWorthMeasuringNs) {
        run_chunk(entry, arguments, context, 0, count);
        return;
    }
    const auto start = std::chrono::steady_clock::now();
    run_chunk(entry, arguments, context, 0, count);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    // Limits the influence of one launch that was descheduled.
    constexpr double kMostGrowth = 1.25;
    const double before = cost_exclusive_ns_.load(std::memory_order_relaxed);
    const double most = before > 0.0 ? kMostGrowth * before : estimated;
    cost_exclusive_ns_.store(std::min(took.count() / static_cast<double>(count), most), std::memory_order_relaxed);
}

bool CpuKernel::run(KernelEntryPoint entry, const void* arguments, const Grid& grid,
                    const LaunchOptions& options) const {
    const DefaultFloats floats;
    LaunchContext context;
    std::copy(std::begin(grid.dim), std::end(grid.dim), context.dim);
    context.fault = options.fault;
    context.not_finite = options.not_finite;
    const CpuEntry& code = description().cpu();
    if (!code.finds_objects && !code.has_atomics && !may_be_long() && !options.serial &&
        is_small_launch(grid.count, code.cost)) {
        entry(arguments, &context, 0, grid.count);  // most launches: the rest costs as much as they take
        return true;
    }
    Interrupts interrupts(options.interrupted, {&code_, 1});
    context.interrupts = preempts(interrupts);
    Accesses accesses;  // takes no memory before there is one
    if (options.serial) context.accesses = &accesses;
    std::optional<spatial::ReadLease> reading;
    if (code.finds_objects) {
        if (const spatial::PreviousObjectsPtr& previous = spatial::SnapshotScope::current())
            return run_finding(*previous, entry, arguments, grid, options);
        reading.emplace();
    }
    std::optional<AtomicsLock> lock;
    // With keeps_order, the same code must run each time, but getting the lock depends on other launches.
    if (code.has_atomics) lock.emplace(!options.keeps_order && is_quicker_exclusive(grid.count));
    if (lock && lock->is_exclusive()) {
        run_exclusive(entry, arguments, context, grid.count);
        return !interrupts.is_stopped();
    }
    const int rank = description().tid_rank;
    const std::int64_t row = rank <= 1 ? grid.count : grid.dim[rank - 1];
    // A chunk of so many boundary widths consists mostly of interior threads.
    constexpr std::int64_t kMiddle = 128;
    const std::int64_t least = grid.count / grid.dim[0] * code.boundary * kMiddle;
    parallel_launch(entry, arguments, context, grid.count, row, code.cost, interrupts, least,
                    options.serial || options.keeps_order ? 1 : 0);
    return !interrupts.is_stopped();
}

bool CpuKernel::run_finding(const spatial::PreviousObjects& previous, KernelEntryPoint entry, const void* arguments,
                            const Grid& grid, const LaunchOptions& options) const {
    const FindingEntry finding{entry, arguments, previous};
    const spatial::SnapshotScope none(nullptr);
    return run(&FindingEntry::run, &finding, grid, options);
}

bool CpuKernel::launch(std::span<const std::byte> arguments, const Grid& grid, const LaunchOptions& options,
                       Stream& stream) const {
    if (grid.count == 0) return true;
    const auto& device = static_cast<const CpuDevice&>(stream.device());
    if (!device.is_direct() || !options.private_gradients.empty() || timed_kinds.load(std::memory_order_relaxed) != 0)
        return launch_apart(arguments, grid, options, stream);
    return run(entry_, arguments.data(), grid, options);
}

namespace {

// Several launches in one entry.
struct FusedEntry {
    struct FusedPart {
        KernelEntryPoint entry;
        const std::byte* arguments;
    };
    std::vector<FusedPart> parts;
    std::int64_t piece;

    static void run(const void* self, const LaunchContext* context, std::int64_t begin, std::int64_t end) {
        const auto& [parts, piece] = *static_cast<const FusedEntry*>(self);
        for (std::int64_t at = begin; at < end; at += piece)
            for (const FusedPart& part : parts)
                run_chunk(part.entry, part.arguments, *context, at, std::min(at + piece, end));
    }
};

}  // namespace

bool CpuKernel::launch_fused(std::span<const FusedLaunch> all, std::int64_t piece, const Grid& grid,
                             const LaunchOptions& options) const {
    const DefaultFloats floats;
    FusedEntry fused{{}, piece};
    double cost = 0.0;
    bool is_long = false;
    std::vector<CodeRange> code;
    std::string names;
    const bool is_timed = timed_kinds.load(std::memory_order_relaxed) & kTimedKernel;
    for (const auto& [kernel, arguments] : all) {
        if (is_timed) names += (names.empty() ? "" : " + ") + kernel->description().name;
        const auto& one = static_cast<const CpuKernel&>(*kernel);
        fused.parts.push_back({one.entry_, arguments});
        code.push_back(one.code_);
        is_long |= one.may_be_long();
        cost += kernel->description().cpu().cost;
    }
    LaunchContext context;
    std::copy(std::begin(grid.dim), std::end(grid.dim), context.dim);
    const int rank = description().tid_rank;
    const std::int64_t row = rank <= 1 ? grid.count : grid.dim[rank - 1];
    const TimedHostWork timed(*cpu_devices().front(), kTimedKernel, "kernels ", names);
    Interrupts interrupts(options.interrupted, code);
    context.interrupts = is_long && interrupts.can_stop() ? &interrupts : nullptr;
    parallel_launch(&FusedEntry::run, &fused, context, grid.count, row, cost, interrupts, piece);
    return !interrupts.is_stopped();
}

// The rarer kinds of launches. A function of its own, so that the common ones need no stack space for it.
bool CpuKernel::launch_apart(std::span<const std::byte> arguments, const Grid& grid, const LaunchOptions& options,
                             Stream& stream) const {
    auto& device = static_cast<CpuDevice&>(stream.device());
    if (DeferredStream* const late = device.deferred()) {
        late->put([this, &stream, grid, options = options, previous = spatial::SnapshotScope::current(),
                   bytes = std::vector<std::byte>(arguments.begin(), arguments.end()),
                   gradients = std::vector<PrivateGradient>(options.private_gradients.begin(),
                                                            options.private_gradients.end())]() mutable {
            options.private_gradients = gradients;
            options.interrupted = nullptr;
            const spatial::SnapshotScope finding(previous);
            const CpuDevice::Access access(stream.device());
            launch(bytes, grid, options, stream);
        });
        return true;
    }
    const CpuDevice::Access access(device);
    const TimedHostWork timed(device, kTimedKernel, "kernel ", description().name);
    if (options.private_gradients.empty()) return run(entry_, arguments.data(), grid, options);
    PrivateGradients own(entry_, arguments, options.private_gradients);
    const bool finished = run(&PrivateGradients::run_piece, &own, grid, options);
    own.add_up();
    return finished;
}

void CpuKernel::call(const std::byte* arguments, Fault& fault) const {
    const DefaultFloats floats;
    const LaunchContext context{{1, 1, 1, 1}, &fault};
    entry_(arguments, &context, 0, 1);
}

}  // namespace weft::runtime
