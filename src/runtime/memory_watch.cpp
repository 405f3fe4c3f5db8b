#include "runtime/memory_watch.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "runtime/device.h"

namespace weft::runtime {
namespace {

// Never destroyed: arrays may go while the program ends.
struct Watches {
    std::mutex mutex;
    std::vector<MemoryWatch*> all;
    std::uint64_t last = 0;
};

Watches& watches() {
    static auto* const one = new Watches;
    return *one;
}

std::atomic<std::string (*)()> allocation_site{nullptr};

}  // namespace

void set_allocation_site(std::string (*site)()) { allocation_site = site; }

// Python is asked outside of the lock.
std::uint64_t note_taken(const Device& device, std::int64_t size_bytes) {
    std::string (*const ask)() = allocation_site.load();
    const MemoryWatch::Piece piece{device.alias, size_bytes, "memory", ask ? ask() : std::string()};
    const std::lock_guard lock(watches().mutex);
    const std::uint64_t number = ++watches().last;
    for (MemoryWatch* const watch : watches().all) {
        MemoryWatch::Use& use = watch->uses_[piece.device];
        ++use.allocations;
        use.size_bytes += size_bytes;
        use.live_bytes += size_bytes;
        use.most_bytes = std::max(use.most_bytes, use.live_bytes);
        watch->live_.emplace(number, piece);
    }
    return number;
}

void describe_taken(std::uint64_t number, const std::string& what) {
    const std::lock_guard lock(watches().mutex);
    for (MemoryWatch* const watch : watches().all)
        if (const auto found = watch->live_.find(number); found != watch->live_.end()) found->second.what = what;
}

void note_freed(std::uint64_t number) {
    const std::lock_guard lock(watches().mutex);
    for (MemoryWatch* const watch : watches().all) {
        const auto found = watch->live_.find(number);
        if (found == watch->live_.end()) continue;
        watch->uses_[found->second.device].live_bytes -= found->second.size_bytes;
        watch->live_.erase(found);
    }
}

MemoryWatch::MemoryWatch() {
    const std::lock_guard lock(watches().mutex);
    watches().all.push_back(this);
    ++memory_watchers;
}

MemoryWatch::~MemoryWatch() { stop(); }

void MemoryWatch::stop() {
    const std::lock_guard lock(watches().mutex);
    if (!std::exchange(is_on_, false)) return;
    std::erase(watches().all, this);
    --memory_watchers;
}

void MemoryWatch::clear() {
    const std::lock_guard lock(watches().mutex);
    uses_.clear();
    live_.clear();
}

MemoryWatch::State MemoryWatch::state() const {
    const std::lock_guard lock(watches().mutex);
    State found{uses_, {}};
    for (const auto& [number, piece] : live_) found.live.push_back(piece);
    return found;
}

}  // namespace weft::runtime
