#include "program/run.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "program/fault.h"
#include "program/host.h"
#include "program/meeting.h"
#include "program/own_gradients.h"
#include "program/settings.h"
#include "runtime/cpu/pool.h"
#include "runtime/print.h"

namespace weft::program {

namespace {

// A launch that is alone has one thread. That is no loss where others would not be asked, and a gain where they could
// not make up for the atomics. It keeps others waiting, and does not ask about interrupts: it has to be short. How long
// it takes is measured, since that depends on where the data lies; before, the estimate is taken with the factor that
// it has for data in the cache.
bool pays_to_be_alone(const CompiledKernel& kernel, std::int64_t threads) {
    constexpr double kNobodyAskedNs = 30'000, kShortNs = 100'000, kShortOnOneThreadNs = 2'000'000, kInCache = 0.3;
    const CpuEntry& entry = kernel.description.cpu();
    if (entry.cost_alone <= 0.0) return false;
    const double measured = kernel.cost_alone.get();
    const double each = measured > 0.0 ? measured : kInCache * entry.cost_alone;
    const double alone = each * static_cast<double>(threads);
    const int workers = runtime::cpu_threads();
    if (alone < kNobodyAskedNs) return true;
    const double shared = alone * entry.cost / entry.cost_alone / workers;
    if (workers == 1 ? alone < kShortOnOneThreadNs : alone < kShortNs && alone < shared) return true;
    // What was measured once may have been an accident: some time it is tried again.
    constexpr double kForgotten = 0.99;
    if (measured > 0.0) kernel.cost_alone.set(measured * kForgotten);
    return false;
}

// The threads of a launch that is alone.
void run_alone(const CompiledKernel& kernel, KernelEntryPoint entry, const void* arguments, LaunchContext& context,
               std::int64_t count) {
    constexpr double kWorthMeasuringNs = 5'000;
    context.alone = true;
    if (kernel.description.cpu().cost_alone * static_cast<double>(count) < kWorthMeasuringNs) {
        entry(arguments, &context, 0, count);
        return;
    }
    const auto start = std::chrono::steady_clock::now();
    entry(arguments, &context, 0, count);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    // One launch that was interrupted does not count for more than it has to.
    constexpr double kMostGrowth = 1.25;
    const double before = kernel.cost_alone.get();
    const double most = before > 0.0 ? kMostGrowth * before : kernel.description.cpu().cost_alone;
    kernel.cost_alone.set(std::min(took.count() / static_cast<double>(count), most));
}

}  // namespace

bool run_entry(const CompiledKernel& kernel, KernelEntryPoint entry, const void* arguments, const std::byte* block,
               const Grid& grid, bool (*interrupted)(), Fault* not_finite) {
    if (grid.count == 0) return true;
    LaunchContext context;
    std::copy(std::begin(grid.dim), std::end(grid.dim), context.dim);
    Fault fault;  // not cleared: a launch takes less time than that
    context.fault = kernel.description.sites.empty() ? nullptr : &fault;
    context.not_finite = not_finite;
    // One CPU thread, and always the same code: whether a launch is alone depends on what others do.
    const bool keeps_order = kernel.description.cpu().ordered && settings().deterministic;
    std::optional<Meeting> meeting;
    if (kernel.description.cpu().meets) meeting.emplace(!keeps_order && pays_to_be_alone(kernel, grid.count));
    if (meeting && meeting->is_alone()) {
        run_alone(kernel, entry, arguments, context, grid.count);
        if (fault.claimed) throw_fault(kernel, fault, block);
        return true;
    }
    int rank = kernel.description.tid_rank;
    std::int64_t row = rank <= 1 ? grid.count : grid.dim[rank - 1];
    // A chunk is mostly middle where it is so many times as long as its two ends.
    constexpr std::int64_t kMiddle = 128;
    const std::int64_t least = grid.count / grid.dim[0] * kernel.description.cpu().seam * kMiddle;
    bool finished = runtime::parallel_launch(entry, arguments, context, grid.count, row, kernel.description.cpu().cost,
                                             interrupted, least, kernel.serial || keeps_order ? 1 : 0);
    if (fault.claimed) throw_fault(kernel, fault, block);
    return finished;
}

void flush_prints() {
    if (runtime::has_prints()) host().print(runtime::take_prints());
}

namespace {

bool run_threads(const CompiledKernel& kernel, const std::byte* block, const Grid& grid, bool (*interrupted)(),
                 Fault* not_finite) {
    if (!kernel.own_gradients.empty()) return run_with_own(kernel, block, grid, interrupted);
    return run_entry(kernel, kernel.entry, block, block, grid, interrupted, not_finite);
}

}  // namespace

void run(const CompiledKernel& kernel, const std::byte* block, const Grid& grid, Fault* not_finite) {
    if (grid.count == 0) return;
    // Shorter launches keep the lock: giving it up and taking it again costs more than others could do meanwhile.
    constexpr double kShortNs = 5000.0;
    bool finished = true;
    try {
        if (kernel.description.cpu().cost * static_cast<double>(grid.count) > kShortNs) {
            const WithoutHost without;
            finished = run_threads(kernel, block, grid, host().interrupted, not_finite);
        } else {
            finished = run_threads(kernel, block, grid, nullptr, not_finite);
        }
    } catch (...) {
        flush_prints();
        throw;
    }
    flush_prints();
    if (!finished) host().stop();
}

}  // namespace weft::program
