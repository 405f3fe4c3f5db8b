// Whether a launch that is running should end: Ctrl-C. Pieces of its grid and long loops of its threads ask.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "binary/cpu_abi.h"
#include "runtime/cpu/copy_lanes.h"

namespace weft::runtime {

// Of one launch; made on the thread that launches. Any of its threads may ask.
class Interrupts {
public:
    // `interrupted` is asked on the launching thread only, every few tens of milliseconds. Null: nobody ends the
    // launch.
    explicit Interrupts(bool (*interrupted)()) : interrupted_(interrupted) {}
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    bool can_stop() const { return interrupted_ != nullptr; }
    bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }

    // Whether the launch should end.
    bool poll() {
        if (is_stopped()) return true;
        if (!interrupted_ || !pthread_equal(caller_, pthread_self())) return false;
        const Clock::time_point now = Clock::now();
        if (asked_ == Clock::time_point()) asked_ = now;
        if (now - asked_ < kBetweenQuestions) return false;
        if (interrupted_()) stopped_.store(true, std::memory_order_relaxed);
        asked_ = Clock::now();
        return is_stopped();
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kBetweenQuestions{20};

    bool (*interrupted_)();
    pthread_t caller_ = pthread_self();
    Clock::time_point asked_;  // of the caller; the epoch before the first question
    std::atomic<bool> stopped_{false};
};

// Called by machine code: 1 where the thread is to leave its kernel. On x86 the calls expect that integer registers are
// kept (LLVM's preserve_most), so that loops have as many as without them.
WEFT_KEEPS_REGISTERS inline std::int32_t weft_poll(const LaunchContext* context) noexcept {
    return context->interrupts != nullptr && context->interrupts->poll();
}

// What a loop goes on with after a question: see codegen/emit_poll.cpp.
WEFT_KEEPS_REGISTERS inline std::int64_t weft_next_part(std::int64_t first) noexcept { return first; }

}  // namespace weft::runtime
