// Measures a piece of work with two events (runtime/timing.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/device.h"
#include "runtime/timing.h"

namespace weft::runtime {

// The work that this thread enqueues into the stream during the object's life is one piece.
class TimedWork {
public:
    TimedWork(Stream& stream, TimedKind kind, std::string_view name, std::string_view of = {}) {
        if (timed_kinds.load(std::memory_order_relaxed) & kind) begin(stream, kind, name, of);
    }
    ~TimedWork() {
        if (end_) finish();
    }
    TimedWork(const TimedWork&) = delete;
    TimedWork& operator=(const TimedWork&) = delete;

private:
    void begin(Stream& stream, TimedKind kind, std::string_view name, std::string_view of);
    void finish() noexcept;

    Stream* stream_ = nullptr;
    std::shared_ptr<Event> end_;
    std::shared_ptr<std::string> problem_;  // the reason why the end could not be recorded
};

}  // namespace weft::runtime
