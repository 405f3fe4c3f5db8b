#include "runtime/buffer.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "runtime/allocator.h"
#include "runtime/memory_watch.h"
#include "runtime/out_of_memory.h"
#include "runtime/pinned.h"

namespace weft::runtime {

// ---- references ----

namespace {

constexpr std::size_t kFewest = 256;  // no search below

// Sorted by address; several buffers may represent the same memory of another library.
struct ByAddress {
    using is_transparent = void;
    static bool less(const void* a, const void* b) { return std::less<>()(a, b); }
    bool operator()(const BufferPtr& a, const BufferPtr& b) const {
        return a->data != b->data ? less(a->data, b->data) : less(a.get(), b.get());
    }
    bool operator()(const void* a, const BufferPtr& b) const { return less(a, b->data); }
};

using Set = std::set<BufferPtr, ByAddress>;

// Buffers overlap only if they represent the same memory of another library, so the first match backwards is right.
Set::const_iterator locate(const Set& buffers, const void* address) {
    for (auto next = buffers.upper_bound(address); next != buffers.begin();) {
        --next;
        auto* begin = static_cast<const std::byte*>((*next)->data);
        if (ByAddress::less(address, begin + (*next)->size_bytes)) return next;
    }
    return buffers.end();
}

// The buffers that an aligned word of the holder's memory points into.
Set pointed_to(const Set& buffers, const Buffer& holder) {
    Set used;
    auto* begin = static_cast<const std::byte*>(holder.data);
    auto skip = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(begin) % alignof(void*));
    for (std::int64_t at = skip; at + static_cast<std::int64_t>(sizeof(void*)) <= holder.size_bytes;
         at += sizeof(void*)) {
        const void* address = nullptr;
        std::memcpy(&address, begin + at, sizeof address);
        if (auto found = locate(buffers, address); found != buffers.end()) used.insert(*found);
    }
    return used;
}

}  // namespace

struct References::KeptBuffers {
    std::mutex mutex;
    Set buffers;
    // For memory that the host cannot read: buffers for addresses at a known offset, and for those at an unknown one.
    std::map<std::int64_t, BufferPtr> edges;
    Set anywhere;
    std::size_t prune_at = kFewest;

    void prune(const Buffer& holder) {
        if (holder.device->is_host_memory) {
            buffers = pointed_to(buffers, holder);
        } else {
            buffers = anywhere;
            for (const auto& [offset, kept] : edges) buffers.insert(kept);
        }
        prune_at = std::max(kFewest, 2 * buffers.size());
    }
};

// ---- views of more than 2^31 - 1 elements along a dimension ----

namespace {

struct HugeHolder {
    const std::byte *begin, *end;
    std::int64_t extent;
};

struct HugeHolders {
    std::mutex mutex;
    std::map<const References*, HugeHolder> all;
};

// Never destroyed: buffers may outlive static objects.
HugeHolders& huge_holders() {
    static HugeHolders& holders = *new HugeHolders;
    return holders;
}

}  // namespace

std::atomic<bool> References::any_is_huge_{false};

void References::add_extent(std::int64_t extent, const Buffer& holder) {
    if (extent <= std::numeric_limits<std::int32_t>::max()) return;
    HugeHolders& holders = huge_holders();
    const std::lock_guard lock(holders.mutex);
    const auto* const begin = static_cast<const std::byte*>(holder.data);
    HugeHolder& noted = holders.all.try_emplace(this, begin, begin + holder.size_bytes, 0).first->second;
    noted.extent = std::max(noted.extent, extent);
    huge_extent_.store(noted.extent, std::memory_order_relaxed);
    any_is_huge_.store(true, std::memory_order_relaxed);
}

std::int64_t References::huge_extent_around(const void* address) {
    HugeHolders& holders = huge_holders();
    const std::lock_guard lock(holders.mutex);
    std::int64_t most = 0;
    for (const auto& [references, holder] : holders.all)
        if (!ByAddress::less(address, holder.begin) && ByAddress::less(address, holder.end))
            most = std::max(most, holder.extent);
    return most;
}

// ---- kept buffers ----

References::~References() {
    delete kept_.load(std::memory_order_relaxed);
    if (huge_extent_.load(std::memory_order_relaxed) == 0) return;
    HugeHolders& holders = huge_holders();
    const std::lock_guard lock(holders.mutex);
    holders.all.erase(this);
}

References::KeptBuffers& References::kept() {
    if (KeptBuffers* const there = kept_.load(std::memory_order_acquire)) return *there;
    auto* const made = new KeptBuffers;
    KeptBuffers* there = nullptr;
    if (kept_.compare_exchange_strong(there, made, std::memory_order_acq_rel)) return *made;
    delete made;
    return *there;
}

void References::add(const BufferPtr& kept_buffer, const Buffer& holder, std::int64_t offset) {
    // Memory that refers to itself needs no reference, which would keep it alive for ever.
    if (!kept_buffer || !kept_buffer->data || kept_buffer.get() == &holder) return;
    KeptBuffers& all = kept();
    const std::lock_guard lock(all.mutex);
    all.buffers.insert(kept_buffer);
    if (!holder.device->is_host_memory) {
        if (offset == kUnknownOffset)
            all.anywhere.insert(kept_buffer);
        else
            all.edges[offset] = kept_buffer;
    }
    if (all.buffers.size() > all.prune_at) all.prune(holder);
}

void References::add_all(const References& of, const Buffer& holder) {
    // A copy within the same memory needs no new references, since the search finds both. Edges do, as they have one
    // place each.
    if (&of == this && holder.device->is_host_memory) return;
    for (const BufferPtr& kept : of.all()) add(kept, holder);
    add_extent(of.huge_extent_.load(std::memory_order_relaxed), holder);
}

void References::forget(std::int64_t begin, std::int64_t end, const Buffer& holder) {
    KeptBuffers* const there = kept_.load(std::memory_order_acquire);
    if (!there || holder.device->is_host_memory) return;
    Set let_go;  // destroyed after the lock is released
    const std::lock_guard lock(there->mutex);
    let_go = there->buffers;
    there->edges.erase(there->edges.lower_bound(begin), there->edges.lower_bound(end));
    if (begin <= 0 && end >= holder.size_bytes) there->anywhere.clear();
    there->prune(holder);
}

std::vector<BufferPtr> References::all() const {
    KeptBuffers* const there = kept_.load(std::memory_order_acquire);
    if (!there) return {};
    const std::lock_guard lock(there->mutex);
    return {there->buffers.begin(), there->buffers.end()};
}

BufferPtr References::find(const void* address) const {
    KeptBuffers* const there = kept_.load(std::memory_order_acquire);
    if (!there) return nullptr;
    const std::lock_guard lock(there->mutex);
    const auto found = locate(there->buffers, address);
    return found == there->buffers.end() ? nullptr : *found;
}

std::size_t References::size() const {
    KeptBuffers* const there = kept_.load(std::memory_order_acquire);
    if (!there) return 0;
    const std::lock_guard lock(there->mutex);
    return there->buffers.size();
}

// ---- allocation ----

namespace {

void* take_or_throw(std::int64_t size_bytes, bool zeroed, Device& device) {
    return take_memory(device, size_bytes, zeroed, current_stream(device), "array memory");
}

BufferPtr make_buffer(void* data, std::int64_t size_bytes, Device& device) {
    auto buffer = std::make_shared<Buffer>();
    buffer->data = data;
    buffer->size_bytes = size_bytes;
    buffer->device = &device;
    return buffer;
}

// Pinned memory of the host, if this thread wants it (Pinning); null otherwise, and if there is no GPU.
BufferPtr pinned_buffer(std::int64_t size_bytes, bool zeroed, Device& device) {
    if (!Pinning::is_on() || &device != &host_device()) return nullptr;
    void* const data = allocate_pinned(size_bytes);
    if (!data) return nullptr;
    BufferPtr buffer = make_buffer(data, size_bytes, device);
    buffer->release = [data] { free_pinned(data); };
    if (zeroed) device.clear(data, size_bytes, current_stream(device));
    return buffer;
}

// Precondition: `size_bytes` is not 0.
BufferPtr take_buffer(std::int64_t size_bytes, bool zeroed, Device& device) {
    BufferPtr buffer = pinned_buffer(size_bytes, zeroed, device);
    if (!buffer) buffer = buffer_of_program(size_bytes, zeroed, device);
    if (!buffer) buffer = make_buffer(take_or_throw(size_bytes, zeroed, device), size_bytes, device);
    if (is_memory_watched()) buffer->watched = note_taken(device, size_bytes);
    return buffer;
}

}  // namespace

Buffer::~Buffer() {
    if (bool (*const keep)(Buffer&) = memory_keeper.load(std::memory_order_relaxed); keep && keep(*this)) return;
    if (watched != 0) note_freed(watched);
    if (release) {
        release();
    } else if (data) {
        device->free(data, size_bytes, current_stream(*device));
    }
}

BufferPtr allocate(std::int64_t size_bytes, Device& device) {
    if (size_bytes == 0) return make_buffer(nullptr, 0, device);
    return take_buffer(size_bytes, false, device);
}

BufferPtr allocate_zeroed(std::int64_t size_bytes, Device& device) {
    if (size_bytes == 0) return make_buffer(nullptr, 0, device);
    return take_buffer(size_bytes, true, device);
}

}  // namespace weft::runtime
