// Durations of pieces of work on devices: wp.timing_begin() and wp.ScopedTimer. Work of a CUDA device is measured by
// two events, work of a CPU by two readings of the clock. Work that is being captured is not timed. Launches of graphs
// are, and on a CPU also their nodes.
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

// Values of wp.TIMING_KERNEL and its relatives.
enum TimedKind : unsigned { kTimedKernel = 1, kTimedOwnKernel = 2, kTimedCopy = 4, kTimedFill = 8, kTimedGraph = 16 };

struct Activity {
    Device* device;
    std::string name;
    TimedKind kind;
    double ms;
};

// The kinds of work that are timed at present.
inline std::atomic<unsigned> timed_kinds{0};

// Starts timing work of these kinds, until end_timing(). Pairs nest.
void begin_timing(unsigned kinds);
// Ends the last begin_timing(). Waits for the timed work and returns it in the order in which it was enqueued. Throws
// UsageError without a begin_timing().
std::vector<Activity> end_timing();

// Adds a piece of work. end_timing() calls `ms`, which waits for the end of the work and may throw. False if timing has
// ended meanwhile.
bool add_timed_piece(Device& device, std::string name, TimedKind kind, std::function<double()> ms);

// The work of this thread during the object's life is one piece of work of a CPU.
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
