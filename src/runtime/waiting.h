// How a thread waits for a device: it asks again and again whether the work is done, lets other threads of the program
// go on meanwhile, and asks now and then whether the program wants something else (Ctrl-C). A device cannot be stopped:
// what was waited for goes on, and everything stays usable.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace weft::runtime {

// What waits ask of the program that Weft runs in. Null functions are not asked.
struct WaitingHost {
    // Throws what the caller of a wait gets where the program wants to go on without it. May take the host's lock.
    void (*check)() = nullptr;
    // Between these two other threads of the program may take the host's lock, if this thread had it. `leave` gives
    // what `enter` takes.
    void* (*leave)() = nullptr;
    void (*enter)(void*) = nullptr;
};
inline std::atomic<const WaitingHost*> waiting_host{nullptr};

// While it lives, waits of this thread are not left before their end and keep the host's lock: memory is given back,
// what was read is looked at, or there is a lock of our own that others may want.
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

// Returns when `is_done` says so. Short waits spin; longer ones sleep for a small part of what they have taken.
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
