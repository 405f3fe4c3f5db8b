#include "runtime/kept_memory.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

namespace weft::runtime {
namespace {

struct KeptMemoryRegistry {
    std::mutex mutex;
    std::vector<KeptMemory*> memories;
};
// Never freed: arrays may outlive static objects.
KeptMemoryRegistry& all_kept() {
    static KeptMemoryRegistry& made = *new KeptMemoryRegistry;
    return made;
}

}  // namespace

KeptMemory::KeptMemory() {
    const std::lock_guard lock(all_kept().mutex);
    all_kept().memories.push_back(this);
    memory_keeper = &take_over;
}

// Memory that is released now may be used by another graph, which then keeps it.
KeptMemory::~KeptMemory() {
    const std::lock_guard lock(all_kept().mutex);
    std::erase(all_kept().memories, this);
    if (all_kept().memories.empty()) memory_keeper = nullptr;
}

void KeptMemory::add(std::span<const void* const> addresses) {
    const std::lock_guard lock(all_kept().mutex);
    for (const void* address : addresses) {
        const auto at = std::ranges::lower_bound(addresses_, address, std::less<>());
        if (address && (at == addresses_.end() || *at != address)) addresses_.insert(at, address);
    }
}

void KeptMemory::hold(std::shared_ptr<const void> object) {
    if (std::ranges::find(held_, object) == held_.end()) held_.push_back(std::move(object));
}

void KeptMemory::note_written(const BufferPtr& buffer) {
    for (const std::weak_ptr<Buffer>& known : written_)
        if (!known.owner_before(buffer) && !buffer.owner_before(known)) return;
    written_.push_back(buffer);
}

void KeptMemory::count_writes() const {
    for (const std::weak_ptr<Buffer>& each : written_)
        if (const BufferPtr buffer = each.lock()) ++buffer->version;
}

void KeptMemory::take(KeptMemory& other) {
    add(other.addresses_);
    for (std::shared_ptr<const void>& object : other.held_) hold(std::move(object));
    for (const std::weak_ptr<Buffer>& each : other.written_)
        if (const BufferPtr buffer = each.lock()) note_written(buffer);
    for (std::function<void()>& step : other.preparations_) preparations_.push_back(std::move(step));
    const std::lock_guard lock(all_kept().mutex);
    freed_.insert(freed_.end(), other.freed_.begin(), other.freed_.end());
    other.freed_.clear();
}

bool KeptMemory::uses(const Buffer& buffer) const {
    const auto first = std::ranges::lower_bound(addresses_, buffer.data, std::less<>());
    return first != addresses_.end() &&
           std::less<>()(*first,
                         static_cast<const void*>(static_cast<const std::byte*>(buffer.data) + buffer.size_bytes));
}

// The buffer is being destroyed: a new one takes over its memory.
bool KeptMemory::take_over(Buffer& buffer) {
    if (!buffer.data) return false;
    const std::lock_guard lock(all_kept().mutex);
    const auto user =
        std::ranges::find_if(all_kept().memories, [&](const KeptMemory* memory) { return memory->uses(buffer); });
    if (user == all_kept().memories.end()) return false;
    auto kept = std::make_shared<Buffer>();
    kept->data = buffer.data;
    kept->size_bytes = buffer.size_bytes;
    kept->device = buffer.device;
    kept->release = std::exchange(buffer.release, {});
    kept->watched = std::exchange(buffer.watched, 0);
    kept->references.add_all(buffer.references, *kept);
    (*user)->freed_.push_back(std::move(kept));
    return true;
}

}  // namespace weft::runtime
