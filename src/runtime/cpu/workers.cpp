// Each calling thread has its own arena: in a shared one, callers would wait for each other's pieces. All arenas share
// the same workers.
//
// After fork the workers do not exist any more, which oneTBB does not notice. A child whose parent had used them runs
// its launches on own threads, started for each launch. This is correct, at a cost of some tens of microseconds.
#include "runtime/cpu/workers.h"

#include <pthread.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cpu/interrupts.h"
#include "support/error.h"

namespace weft::runtime {

namespace {

// oneTBB starts as many workers as the machine has CPUs; more must be allowed explicitly. The smallest limit of all
// live controls applies, so the old one is destroyed before a larger one is made. The limit is never below the number
// of CPUs, as it also applies to other users of oneTBB in the process.
void allow_workers(int count) {
    static std::mutex mutex;
    static tbb::global_control* control = nullptr;
    const std::lock_guard lock(mutex);
    constexpr auto kParallelism = tbb::global_control::max_allowed_parallelism;
    if (static_cast<std::size_t>(count) <= tbb::global_control::active_value(kParallelism)) return;
    delete control;
    control = new tbb::global_control(kParallelism, static_cast<std::size_t>(count));
}

// ---- fork ----

std::atomic<bool> workers_used{false};
std::atomic<bool> workers_lost{false};  // set in a child of a process that had used them

void note_lost_workers_in_forked_child() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] {
        if (workers_used.load()) workers_lost.store(true);
    });
    WEFT_CHECK(registered == 0, "cannot register the handler for fork");
}

// This thread's arena, replaced when the number of threads changes.
class Arena {
public:
    tbb::task_arena& get(int threads) {
        if (arena_ == nullptr || threads_ != threads) {
            allow_workers(threads);
            arena_ = std::make_unique<tbb::task_arena>(threads, 1);
            threads_ = threads;
        }
        return *arena_;
    }
    ~Arena() {
        // In a forked child the arena's state describes threads that do not exist.
        if (workers_lost.load()) static_cast<void>(arena_.release());
    }

private:
    std::unique_ptr<tbb::task_arena> arena_;
    int threads_ = 0;
};

// ---- pieces ----

using Range = std::pair<std::int64_t, std::int64_t>;

// The remaining pieces of a thread: the owner takes from the front, thieves from the back.
class alignas(64) Share {
public:
    void set(Range range) { range_.store(packed(range), std::memory_order_release); }

    // Takes a part of the rest, smaller towards the end, so that others can help.
    std::optional<Range> take_front() {
        std::uint64_t seen = range_.load(std::memory_order_relaxed);
        while (true) {
            const auto [first, last] = unpacked(seen);
            if (first >= last) return {};
            const std::int64_t cut = first + std::max((last - first) / kPart, std::int64_t{1});
            if (range_.compare_exchange_weak(seen, packed({cut, last}), std::memory_order_acq_rel))
                return {{first, cut}};
        }
    }

    std::optional<Range> take_back() {
        std::uint64_t seen = range_.load(std::memory_order_relaxed);
        while (true) {
            const auto [first, last] = unpacked(seen);
            if (first >= last) return {};
            const std::int64_t cut = last - (last - first + 1) / 2;
            if (range_.compare_exchange_weak(seen, packed({first, cut}), std::memory_order_acq_rel))
                return {{cut, last}};
        }
    }

    std::int64_t left() const {
        const auto [first, last] = unpacked(range_.load(std::memory_order_relaxed));
        return std::max(last - first, std::int64_t{0});
    }

private:
    static constexpr std::int64_t kPart = 4;
    static std::uint64_t packed(Range range) {
        return static_cast<std::uint64_t>(range.first) << 32 | static_cast<std::uint64_t>(range.second);
    }
    static Range unpacked(std::uint64_t range) {
        return {static_cast<std::int64_t>(range >> 32), static_cast<std::int64_t>(range & 0xffffffffu)};
    }

    std::atomic<std::uint64_t> range_{0};
};

// One call of run_on_workers(). Late workers still look at it and find it closed, so it lives as long as the last of
// them.
class Work {
public:
    Work(std::int64_t pieces, int threads, void (*body)(void*, std::int64_t, std::int64_t), void* state)
        : body_(body), state_(state), shares_(static_cast<std::size_t>(threads)) {
        WEFT_CHECK(pieces <= INT32_MAX, "a launch in more pieces than 2^31");
        for (std::int64_t i = 0; i < threads; ++i) share(i).set({pieces * i / threads, pieces * (i + 1) / threads});
    }

    std::int64_t threads() const { return static_cast<std::int64_t>(shares_.size()); }

    void run_as_caller(Interrupts* interrupts) {
        run(0);
        closed_.store(true);
        wait(interrupts);
        if (thrown_) std::rethrow_exception(thrown_);
    }

    // Calls `begin` first, unless the work is closed; the caller of run_on_workers() waits until then.
    template <typename Begin>
    void run_as_worker(const Begin& begin) {
        active_.fetch_add(1);
        if (!closed_.load()) {
            begin();
            const std::int64_t number = joined_.fetch_add(1);
            if (number < threads()) run(number);
        }
        if (active_.fetch_sub(1) == 1 && closed_.load()) {
            const std::lock_guard lock(mutex_);
            done_.notify_one();
        }
    }

private:
    Share& share(std::int64_t number) { return shares_[static_cast<std::size_t>(number)]; }

    void run(std::int64_t number) {
        try {
            while (const std::optional<Range> range = next(number)) body_(state_, range->first, range->second);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!thrown_) thrown_ = std::current_exception();
        }
    }

    std::optional<Range> next(std::int64_t number) {
        Share& own = share(number);
        if (const std::optional<Range> range = own.take_front()) return range;
        while (true) {
            Share* richest = nullptr;
            std::int64_t most = 0;
            for (Share& other : shares_)
                if (const std::int64_t left = other.left(); left > most) most = left, richest = &other;
            if (richest == nullptr) return {};
            if (const std::optional<Range> stolen = richest->take_back()) {
                own.set(*stolen);
                if (const std::optional<Range> range = own.take_front()) return range;
            }
        }
    }

    // Waits for workers that are still in a piece.
    void wait(Interrupts* interrupts) {
        using Clock = std::chrono::steady_clock;
        constexpr std::chrono::microseconds kSpin{200};
        constexpr std::chrono::milliseconds kBetweenQuestions{20};
        if (active_.load() == 0) return;
        const Clock::time_point begin = Clock::now();
        while (active_.load() != 0 && Clock::now() - begin < kSpin) std::this_thread::yield();
        std::unique_lock lock(mutex_);
        while (!done_.wait_for(lock, kBetweenQuestions, [&] { return active_.load() == 0; })) {
            lock.unlock();
            if (interrupts) interrupts->poll();
            lock.lock();
        }
    }

    void (*const body_)(void*, std::int64_t, std::int64_t);
    void* const state_;
    std::vector<Share> shares_;
    std::atomic<std::int64_t> joined_{1};  // next thread number; the caller is 0
    std::atomic<std::int64_t> active_{0};  // workers that may be in the body
    std::atomic<bool> closed_{false};      // no further worker may begin
    std::mutex mutex_;
    std::condition_variable done_;
    std::exception_ptr thrown_;
};
using WorkPtr = std::shared_ptr<Work>;

// Worker `number` wakes two more, so that all are woken in logarithmic time.
void enqueue(tbb::task_arena& arena, const WorkPtr& work, std::int64_t number) {
    arena.enqueue([&arena, work, number] {
        work->run_as_worker([&] {
            for (const std::int64_t next : {2 * number, 2 * number + 1})
                if (next < work->threads()) enqueue(arena, work, next);
        });
    });
}

// Uses only threads of the standard library.
void run_on_own_threads(const WorkPtr& work, Interrupts* interrupts) {
    std::vector<std::thread> others;
    try {
        for (std::int64_t i = 1; i < work->threads(); ++i) others.emplace_back([work] { work->run_as_worker([] {}); });
    } catch (const std::system_error&) {
        // The system allows no more threads: the existing ones, at least the caller, do the work.
    }
    const auto join = [&] {
        for (std::thread& other : others) other.join();
    };
    try {
        work->run_as_caller(interrupts);
    } catch (...) {
        join();
        throw;
    }
    join();
}

// The thread sanitizer cannot see the ordering within oneTBB's own code, and would report each piece as a race.
#if defined(__SANITIZE_THREAD__)
constexpr bool kOwnThreadsOnly = true;
#else
constexpr bool kOwnThreadsOnly = false;
#endif

}  // namespace

void run_on_workers(std::int64_t pieces, int threads, Interrupts* interrupts,
                    void (*body)(void* state, std::int64_t first, std::int64_t last), void* state) {
    threads = static_cast<int>(std::min<std::int64_t>(threads, pieces));
    if (threads <= 1) {
        if (pieces > 0) body(state, 0, pieces);
        return;
    }
    const auto work = std::make_shared<Work>(pieces, threads, body, state);
    if (kOwnThreadsOnly || workers_lost.load(std::memory_order_relaxed)) return run_on_own_threads(work, interrupts);
    note_lost_workers_in_forked_child();
    workers_used.store(true, std::memory_order_relaxed);
    static thread_local Arena arena;
    enqueue(arena.get(threads), work, 1);
    work->run_as_caller(interrupts);
}

}  // namespace weft::runtime
