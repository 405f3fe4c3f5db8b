// Waiting for a device: the thread polls for the end of the work, lets other threads of the program run, and checks now
// and then for interrupts (Ctrl-C). A device cannot be stopped: the work continues after an interrupt, and everything
// stays usable.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace weft::runtime {

// Callbacks into the program that contains Weft. Null functions are not called.
struct WaitingHost {
    // Throws if the program wants to interrupt the wait; the caller of the wait gets the exception. May take the host's
    // lock.
    void (*check)() = nullptr;
    // leave() releases the host's lock, if this thread holds it, and enter() takes it again with the result of leave().
    void* (*leave)() = nullptr;
    void (*enter)(void*) = nullptr;
};
inline std::atomic<const WaitingHost*> waiting_host{nullptr};

// While it lives, waits of this thread cannot be interrupted and keep the host's lock: during the release of memory,
// the reading of results, or while Weft holds a lock that other threads may want.
class Uninterrupted {
public:
    Uninterrupted() { ++count(); }
    ~Uninterrupted() { --count(); }
    Uninterrupted(const Uninterrupted&) = delete;
    Uninterrupted& operator=(const Uninterrupted&) = delete;
    static bool is_on() { return count() > 0; }

private:
    static int& count() {
        thread_local int uninterrupted = 0;
        return uninterrupted;
    }
};

// Returns when is_done() is true. Short waits spin; longer ones sleep for a small part of the time waited so far.
template <typename IsDone>
void wait_until(IsDone&& is_done) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::microseconds kSpin{100}, kLongestSleep{200};
    constexpr std::chrono::milliseconds kBetweenQuestions{20};
    struct Left {
        explicit Left(const WaitingHost& host) : host(host), state(host.leave()) {}
        ~Left() { host.enter(state); }
        const WaitingHost& host;
        void* state;
    };
    if (is_done()) return;
    const WaitingHost* const host = Uninterrupted::is_on() ? nullptr : waiting_host.load(std::memory_order_acquire);
    std::optional<Left> left;
    const Clock::time_point begin = Clock::now();
    Clock::time_point asked = begin;
    while (!is_done()) {
        const Clock::time_point now = Clock::now();
        if (now - begin < kSpin) {
            std::this_thread::yield();
            continue;
        }
        if (host && host->leave && !left) left.emplace(*host);
        std::this_thread::sleep_for(std::min<Clock::duration>((now - begin) / 32, kLongestSleep));
        if (!host || !host->check || now - asked < kBetweenQuestions) continue;
        asked = now;
        host->check();
    }
}

}  // namespace weft::runtime
