// Scheduling of a launch.
//
//   1. Few threads: the caller runs them, without further overhead.
//   2. Otherwise the caller runs and measures a small part first (the probe), because the kernel's estimate cannot
//      know trip counts of loops. The cost of the rest at the measured rate decides whether other threads help.
//   3. In parallel: pieces of at least kPieceNs, cut at rows if rows are short, are given to the workers (workers.h).
//   4. Long launches that can be interrupted run in steps of some milliseconds; the calling thread polls between its
//      steps. In order (on one thread, if that was requested) the steps are always the same, because the rounding of a
//      chunk's sums depends on its end.
#include "runtime/cpu/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "runtime/cpu/preemption.h"
#include "runtime/cpu/quota.h"
#include "runtime/cpu/workers.h"
#include "support/error.h"
#include "support/float_environment.h"

namespace weft::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// Waking a worker takes some microseconds: work below this is faster on the caller.
constexpr double kInlineNs = 30'000;
// A piece of a parallel launch is worth at least this much, else scheduling it costs a visible part of it.
constexpr double kPieceNs = 10'000;
constexpr std::int64_t kPiecesPerThread = 16;
// Cuts inside a row are multiples of this, so that no SIMD group is cut and no cache line of a small type is shared.
// The smaller number, the widest group, is used if few threads make a piece.
constexpr std::int64_t kLaneAlignment = 64;
constexpr std::int64_t kWidestGroup = 16;
// Launches that are expected to take longer poll for interrupts after such a step.
constexpr double kStepNs = 2'000'000;
// Limit of a step in order: an estimate may be far too low.
constexpr double kMostInStep = 4096;

constexpr int kMaxThreads = 4096;

// ---- number of threads ----

// The CPUs that this process may use: its affinity mask, and the quota of its control groups if there is one.
int available_cpus() {
    int count = 0;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
    if (count < 1) count = static_cast<int>(std::thread::hardware_concurrency());
    if (const std::optional<double> quota = cpu_quota())
        count = std::min(count, std::max(1, static_cast<int>(*quota + 0.5)));
    return std::max(count, 1);
}

int configured_cpus() {
    const char* const text = std::getenv("WARP_CPU_THREADS");
    if (text == nullptr || *text == '\0') return available_cpus();
    int count = 0;
    const char* const end = text + std::strlen(text);
    const auto [stopped, error] = std::from_chars(text, end, count);
    if (error != std::errc() || stopped != end || count < 1 || count > kMaxThreads)
        throw UsageError(
            "WARP_CPU_THREADS",
            "expected a number of threads from 1 to " + std::to_string(kMaxThreads) + ", got '" + text + "'",
            ErrorCategory::value);
    return count;
}

std::atomic<int> thread_count{0};  // 0: not determined yet

template <typename Body>
void run_pieces(std::int64_t pieces, int threads, Interrupts* interrupts, const Body& body) {
    run_on_workers(
        pieces, threads, interrupts,
        [](void* state, std::int64_t first, std::int64_t last) { (*static_cast<const Body*>(state))(first, last); },
        const_cast<Body*>(&body));
}

// ---- one launch ----

double since_ns(Clock::time_point start) {
    return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

// Cuts are multiples of this, counted from thread 0: whole rows if a piece of `wanted` threads contains one, else whole
// SIMD groups.
std::int64_t cut_unit(std::int64_t wanted, std::int64_t row) {
    if (row > 1 && row <= wanted) return row;
    return wanted < kLaneAlignment ? kWidestGroup : kLaneAlignment;
}

// The end of a piece that starts at `begin` and has about `wanted` threads.
std::int64_t cut_after(std::int64_t begin, double wanted, std::int64_t row, std::int64_t end) {
    if (wanted >= static_cast<double>(end - begin)) return end;
    const std::int64_t count = std::max(static_cast<std::int64_t>(wanted), std::int64_t{1});
    const std::int64_t unit = cut_unit(count, row);
    return std::min(end, (begin + count + unit - 1) / unit * unit);
}

class Launch {
public:
    Launch(KernelEntryPoint entry, const void* arguments, const LaunchContext& context, std::int64_t row,
           Interrupts& interrupts)
        : entry_(entry), arguments_(arguments), context_(context), row_(row), interrupts_(interrupts) {}

    void run(std::int64_t begin, std::int64_t end) const {
        const DefaultFloats floats;  // a worker starts with the floating-point mode of the thread that created it
        run_chunk(entry_, arguments_, context_, begin, end);
    }

    // Runs in steps, so that an interrupt stops the launch within a poll interval. Each thread sizes a step by the time
    // of its last one.
    void run_in_steps(std::int64_t begin, std::int64_t end, double cost_ns) {
        double step = kStepNs / std::max(cost_ns, 1e-3);
        while (begin < end && !interrupts_.is_stopped()) {
            const std::int64_t cut = cut_after(begin, step, row_, end);
            const Clock::time_point start = Clock::now();
            run(begin, cut);
            const double took_ns = std::max(since_ns(start), 1.0);
            step = static_cast<double>(cut - begin) * std::clamp(kStepNs / took_ns, 0.1, 4.0);
            begin = cut;
            interrupts_.poll();
        }
    }

    // Runs in steps that depend on the estimate only.
    void run_in_order(std::int64_t count, double cost_ns) {
        const double step = std::min(kStepNs / std::max(cost_ns, 1e-3), kMostInStep);
        for (std::int64_t begin = 0; begin < count && !interrupts_.is_stopped();) {
            const std::int64_t cut = cut_after(begin, step, row_, count);
            run(begin, cut);
            begin = cut;
            if (can_stop()) interrupts_.poll();
        }
    }

    Interrupts* interrupts() const { return &interrupts_; }
    bool can_stop() const { return interrupts_.can_stop(); }
    bool is_stopped() const { return interrupts_.is_stopped(); }

private:
    KernelEntryPoint entry_;
    const void* arguments_;
    const LaunchContext& context_;
    std::int64_t row_;
    Interrupts& interrupts_;
};

// Runs threads [begin, end), on the caller or on all threads depending on their cost.
void run_rest(Launch& launch, std::int64_t begin, std::int64_t end, std::int64_t row, double cost_ns, int threads,
              std::int64_t least) {
    const std::int64_t count = end - begin;
    const double total_ns = cost_ns * static_cast<double>(count);
    const bool in_steps = launch.can_stop() && total_ns > kStepNs;
    if (threads == 1 || total_ns < kInlineNs) {
        if (in_steps) {
            launch.run_in_steps(begin, end, cost_ns);
        } else {
            launch.run(begin, end);
        }
        return;
    }
    const double wanted = std::clamp(total_ns / kPieceNs, 2.0, static_cast<double>(threads) * kPiecesPerThread);
    const std::int64_t most = (count + threads - 1) / threads;
    const auto rough =
        std::max(static_cast<std::int64_t>(static_cast<double>(count) / wanted) + 1, std::min(least, most));
    const std::int64_t unit = cut_unit(rough, row);
    // Piece k is [k * piece, (k + 1) * piece), so that cuts are multiples of the unit for any `begin`.
    const std::int64_t piece = (rough + unit - 1) / unit * unit;
    const std::int64_t first_piece = begin / piece;
    const std::int64_t pieces = (end + piece - 1) / piece - first_piece;
    run_pieces(pieces, threads, launch.interrupts(), [&](std::int64_t first, std::int64_t last) {
        const std::int64_t from = std::max(begin, (first_piece + first) * piece);
        const std::int64_t to = std::min(end, (first_piece + last) * piece);
        if (in_steps) {
            launch.run_in_steps(from, to, cost_ns);
        } else {
            launch.run(from, to);
        }
    });
}

}  // namespace

int cpu_threads() {
    int count = thread_count.load(std::memory_order_relaxed);
    if (count == 0) {
        const int configured = configured_cpus();
        thread_count.compare_exchange_strong(count, configured);  // a concurrent set_cpu_threads() wins
        count = thread_count.load();
    }
    return count;
}

void set_cpu_threads(int count) {
    if (count < 1 || count > kMaxThreads)
        throw UsageError(
            "set_cpu_threads()",
            "expected a number of threads from 1 to " + std::to_string(kMaxThreads) + ", got " + std::to_string(count),
            ErrorCategory::value);
    thread_count.store(count);
}

void parallel_launch(KernelEntryPoint entry, const void* arguments, const LaunchContext& context, std::int64_t count,
                     std::int64_t row, double cost_ns, Interrupts& interrupts, std::int64_t least, int threads) {
    if (count <= 0) return;
    // The path of nearly all small launches: no clock, no atomic, no thread-local.
    if (is_small_launch(count, cost_ns)) return run_chunk(entry, arguments, context, 0, count);
    Launch launch(entry, arguments, context, row, interrupts);
    if (threads == 1) {
        launch.run_in_order(count, cost_ns);
        return;
    }
    if (threads == 0) threads = cpu_threads();
    if (count <= kLaneAlignment) return run_rest(launch, 0, count, row, cost_ns, threads, least);

    // The probe: at most a sixteenth of the launch, and at most a microsecond or two by the estimate.
    const double most = std::min(static_cast<double>(count) / 16.0, 2'000.0 / std::max(cost_ns, 1e-3));
    const std::int64_t probe = cut_after(0, most, row, count);
    const Clock::time_point start = Clock::now();
    launch.run(0, probe);
    if (probe == count || launch.is_stopped()) return;
    double measured_ns = since_ns(start) / static_cast<double>(probe);
    // A first touch of memory or a cold cache makes a probe look expensive; launches that are small by the estimate use
    // other threads only if the difference is large.
    if (cost_ns * static_cast<double>(count) < kInlineNs) measured_ns *= 0.5;
    return run_rest(launch, probe, count, row, measured_ns, threads, least);
}

void parallel_range(std::int64_t count, std::int64_t grain, void (*body)(void* state, std::int64_t, std::int64_t),
                    void* state) {
    if (count <= 0) return;
    grain = std::max<std::int64_t>(grain, 1);
    const int threads = count < 2 * grain ? 1 : cpu_threads();
    if (threads == 1) {
        const DefaultFloats floats;
        body(state, 0, count);
        return;
    }
    const std::int64_t pieces = std::min(count / grain, threads * kPiecesPerThread);
    const std::int64_t piece = (count + pieces - 1) / pieces;
    run_pieces((count + piece - 1) / piece, threads, nullptr, [&](std::int64_t first, std::int64_t last) {
        const DefaultFloats floats;
        body(state, first * piece, std::min(count, last * piece));
    });
}

}  // namespace weft::runtime
