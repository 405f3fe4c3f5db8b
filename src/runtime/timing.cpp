#include "runtime/timing.h"

#include <mutex>
#include <utility>

#include "support/error.h"

namespace weft::runtime {

namespace {

struct TimedInterval {
    Device* device;
    std::string name;
    TimedKind kind;
    std::function<double()> ms;
};
struct Session {
    unsigned kinds;
    std::size_t first;  // index of its first piece
};
struct Timing {
    std::mutex mutex;
    std::vector<TimedInterval> pieces;
    std::vector<Session> sessions;

    void count_kinds() const {
        unsigned kinds = 0;
        for (const Session& session : sessions) kinds |= session.kinds;
        timed_kinds = kinds;
    }
};
// Never freed: threads may still work while the process ends.
Timing& timing() {
    static Timing& made = *new Timing;
    return made;
}

}  // namespace

void begin_timing(unsigned kinds) {
    const std::lock_guard lock(timing().mutex);
    timing().sessions.push_back({kinds, timing().pieces.size()});
    timing().count_kinds();
}

bool add_timed_piece(Device& device, std::string name, TimedKind kind, std::function<double()> ms) {
    const std::lock_guard lock(timing().mutex);
    if (timing().sessions.empty()) return false;
    timing().pieces.push_back({&device, std::move(name), kind, std::move(ms)});
    return true;
}

std::vector<Activity> end_timing() {
    std::vector<TimedInterval> pieces;
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
    for (TimedInterval& piece : pieces) found.push_back({piece.device, std::move(piece.name), piece.kind, piece.ms()});
    return found;
}

void TimedHostWork::begin(Device& device, TimedKind kind, std::string_view name, std::string_view of) {
    auto ms = std::make_shared<std::atomic<double>>(0.0);
    if (!add_timed_piece(device, std::string(name) + std::string(of), kind, [ms] { return ms->load(); })) return;
    ms_ = std::move(ms);
    start_ = std::chrono::steady_clock::now();
}

void TimedHostWork::finish() noexcept {
    *ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace weft::runtime
