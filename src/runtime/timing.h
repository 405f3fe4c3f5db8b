// How long pieces of work of devices take: wp.timing_begin() and wp.ScopedTimer. A piece of a CUDA device is put
// between two events that measure time, a piece of a CPU between two readings of the clock. Work that is captured for a
// graph is not timed; launches of graphs are, and on a CPU also their nodes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

class Device;

// The numbers of wp.TIMING_KERNEL, ...
enum TimedKind : unsigned { kTimedKernel = 1, kTimedOwnKernel = 2, kTimedCopy = 4, kTimedFill = 8, kTimedGraph = 16 };

struct Activity {
    Device* device;
    std::string name;
    TimedKind kind;
    double ms;
};

// The kinds of work that are timed at present.
inline std::atomic<unsigned> timed_kinds{0};

// From now on work of these kinds is timed, until end_timing(). They nest.
void begin_timing(unsigned kinds);
// What was timed since the begin_timing() that it ends, in the order in which it was put, when that work is done.
// Throws UsageError where nothing was begun.
std::vector<Activity> end_timing();

// Adds a piece of work. `ms` is asked by end_timing(): it waits for the end of the work, and may throw. False if timing
// has ended meanwhile.
bool add_timed_piece(Device& device, std::string name, TimedKind kind, std::function<double()> ms);

// While it lives, the work of this thread is a piece of work of a CPU.
class TimedHostWork {
public:
    TimedHostWork(Device& device, TimedKind kind, std::string_view name, std::string_view of = {}) {
        if (timed_kinds.load(std::memory_order_relaxed) & kind) begin(device, kind, name, of);
    }
    ~TimedHostWork() {
        if (ms_) finish();
    }
    TimedHostWork(const TimedHostWork&) = delete;
    TimedHostWork& operator=(const TimedHostWork&) = delete;

private:
    void begin(Device& device, TimedKind kind, std::string_view name, std::string_view of);
    void finish() noexcept;

    std::chrono::steady_clock::time_point start_;
    std::shared_ptr<std::atomic<double>> ms_;  // null: not timed
};

}  // namespace weft::runtime
