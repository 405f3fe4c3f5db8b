// Tells whether a running launch should end (Ctrl-C). The pool polls between pieces of the grid; a thread that runs for
// long is stopped within its machine code (preemption.h).
#pragma once

#include <atomic>
#include <chrono>
#include <span>

namespace weft::runtime {

// The address range of a kernel's machine code. The code holds no resources at any of its instructions: no locks, no
// memory but that of weft_stack_take.
struct CodeRange {
    const void* begin = nullptr;
    const void* end = nullptr;

    bool contains(const void* address) const { return address >= begin && address < end; }
};

// The state of one launch; made on the launching thread. Any thread of the launch may poll it.
class Interrupts {
public:
    // `interrupted` is called on the launching thread only, every few tens of milliseconds; it may take the host's lock
    // and run the program's signal handlers. Null: nothing ends the launch. `code`: the ranges of the launch's kernels.
    explicit Interrupts(bool (*interrupted)(), std::span<const CodeRange> code = {})
        : interrupted_(interrupted), code_(code) {}
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    bool can_stop() const { return interrupted_ != nullptr; }
    bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
    bool is_caller() const { return caller_ == __builtin_thread_pointer(); }
    bool is_in_code(const void* address) const {
        for (const CodeRange& range : code_)
            if (range.contains(address)) return true;
        return false;
    }

    // Whether the launch should end. The caller's first call starts the clock; later ones call `interrupted` at most
    // every 20 ms. Other threads read the last answer.
    bool poll() {
        if (is_stopped()) return true;
        if (!interrupted_ || !is_caller()) return false;
        const Clock::time_point now = Clock::now();
        if (asked_ == Clock::time_point()) asked_ = now;
        return now - asked_ < kBetweenQuestions ? false : ask();
    }

    // Calls `interrupted` at once. On the caller's thread only.
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
    const void* caller_ = __builtin_thread_pointer();  // of the thread: each launch makes one of these
    Clock::time_point asked_;                          // last call of `interrupted`; the epoch before the first
    std::atomic<bool> stopped_{false};
};

}  // namespace weft::runtime
