// Whether a launch that is running should end: Ctrl-C. The pool asks between pieces of the grid; a thread that runs for
// long is asked in the midst of its machine code (preemption.h).
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <span>

namespace weft::runtime {

// Where machine code of a kernel lies. It holds no resources at any of its instructions: no locks, no memory but that
// of weft_stack_take.
struct CodeRange {
    const void* begin = nullptr;
    const void* end = nullptr;

    bool contains(const void* address) const { return address >= begin && address < end; }
};

// Of one launch; made on the thread that launches. Any of its threads may ask.
class Interrupts {
public:
    // `interrupted` is called on the launching thread only, every few tens of milliseconds; it may take the host's lock
    // and run the program's handlers of signals. Null: nothing ends the launch. `code`: that of the launch's kernels.
    explicit Interrupts(bool (*interrupted)(), std::span<const CodeRange> code = {})
        : interrupted_(interrupted), code_(code) {}
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    bool can_stop() const { return interrupted_ != nullptr; }
    bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
    bool is_caller() const { return pthread_equal(caller_, pthread_self()); }
    bool is_in_code(const void* address) const {
        for (const CodeRange& range : code_)
            if (range.contains(address)) return true;
        return false;
    }

    // Whether the launch should end. The caller's first call sets the clock, and the following ones ask at most every
    // 20 ms; other threads learn of the answer.
    bool poll() {
        if (is_stopped()) return true;
        if (!interrupted_ || !is_caller()) return false;
        const Clock::time_point now = Clock::now();
        if (asked_ == Clock::time_point()) asked_ = now;
        return now - asked_ < kBetweenQuestions ? false : ask();
    }

    // The same at once. On the caller's thread.
    bool ask() {
        if (!is_stopped() && interrupted_ && interrupted_()) stopped_.store(true, std::memory_order_relaxed);
        asked_ = Clock::now();
        return is_stopped();
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kBetweenQuestions{20};

    bool (*interrupted_)();
    std::span<const CodeRange> code_;
    pthread_t caller_ = pthread_self();
    Clock::time_point asked_;  // of the caller; the epoch before the first question
    std::atomic<bool> stopped_{false};
};

}  // namespace weft::runtime
