#include "runtime/cuda/timing.h"

#include <mutex>
#include <utility>

#include "runtime/cuda/device.h"
#include "support/error.h"

namespace weft::runtime {

namespace {

struct Piece {
    Device* device;
    std::string name;
    TimedKind kind;
    std::shared_ptr<Event> begin, end;
    std::shared_ptr<std::string> problem;
};
struct Session {
    unsigned kinds;
    std::size_t first;  // of the pieces that it may have
};
struct Timing {
    std::mutex mutex;
    std::vector<Piece> pieces;
    std::vector<Session> sessions;

    void count_kinds() const {
        unsigned kinds = 0;
        for (const Session& session : sessions) kinds |= session.kinds;
        timed_kinds = kinds;
    }
};
// Never freed: threads may work while the process ends.
Timing& timing() {
    static Timing& made = *new Timing;
    return made;
}

}  // namespace

void TimedWork::begin(CudaStream& stream, TimedKind kind, std::string_view name, std::string_view of) {
    if (stream.recording()) return;
    CudaDevice& device = stream.cuda_device();
    const std::shared_ptr<Event> begin = device.make_event(/*has_time=*/true);
    std::shared_ptr<Event> end = device.make_event(/*has_time=*/true);
    begin->record(stream);
    const std::lock_guard lock(timing().mutex);
    if (timing().sessions.empty()) return;
    timing().pieces.push_back(
        {&device, std::string(name) + std::string(of), kind, begin, end, std::make_shared<std::string>()});
    problem_ = timing().pieces.back().problem;
    stream_ = &stream;
    end_ = std::move(end);
}

void TimedWork::finish() noexcept {
    try {
        end_->record(*stream_);
    } catch (const Error& error) {
        *problem_ = error.what();
    }
}

void begin_timing(unsigned kinds) {
    const std::lock_guard lock(timing().mutex);
    timing().sessions.push_back({kinds, timing().pieces.size()});
    timing().count_kinds();
}

std::vector<Activity> end_timing() {
    std::vector<Piece> pieces;
    {
        const std::lock_guard lock(timing().mutex);
        if (timing().sessions.empty())
            throw UsageError("timing_end()", "nothing is being timed. help: wp.timing_begin() first");
        const Session session = timing().sessions.back();
        timing().sessions.pop_back();
        for (std::size_t i = session.first; i < timing().pieces.size(); ++i)
            if (timing().pieces[i].kind & session.kinds) pieces.push_back(timing().pieces[i]);
        if (timing().sessions.empty()) timing().pieces.clear();
        timing().count_kinds();
    }
    std::vector<Activity> found;
    for (Piece& piece : pieces) {
        if (!piece.end->is_recorded())
            throw UsageError("timing_end()", "the end of '" + piece.name + "' on '" + piece.device->alias +
                                                 "' could not be recorded: " + *piece.problem);
        piece.end->synchronize();
        found.push_back({piece.device, std::move(piece.name), piece.kind, piece.end->ms_since(*piece.begin)});
    }
    return found;
}

}  // namespace weft::runtime
