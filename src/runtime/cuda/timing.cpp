#include "runtime/cuda/timing.h"

#include <utility>

#include "support/error.h"

namespace weft::runtime {

void TimedWork::begin(Stream& stream, TimedKind kind, std::string_view name, std::string_view of) {
    if (stream.recording()) return;
    Device& device = stream.device();
    const std::shared_ptr<Event> begin = device.make_event(/*has_time=*/true);
    const std::shared_ptr<Event> end = device.make_event(/*has_time=*/true);
    begin->record(stream);
    std::string full = std::string(name) + std::string(of);
    const auto problem = std::make_shared<std::string>();
    const bool is_timed = add_timed_piece(device, full, kind, [&device, full, begin, end, problem] {
        if (!end->is_recorded())
            throw UsageError("timing_end()",
                             "the end of '" + full + "' on '" + device.alias + "' could not be recorded: " + *problem);
        end->synchronize();
        return end->ms_since(*begin);
    });
    if (!is_timed) return;
    problem_ = problem;
    stream_ = &stream;
    end_ = end;
}

void TimedWork::finish() noexcept {
    try {
        end_->record(*stream_);
    } catch (const Error& error) {
        *problem_ = error.what();
    }
}

}  // namespace weft::runtime
