#include "runtime/references.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "runtime/array.h"

namespace weft::runtime {

// By address; several buffers may stand for the same foreign memory.
bool References::ByAddress::operator()(const BufferPtr& a, const BufferPtr& b) const {
    if (a->data != b->data) return std::less<>()(static_cast<const void*>(a->data), static_cast<const void*>(b->data));
    return std::less<>()(a.get(), b.get());
}

bool References::ByAddress::operator()(const void* a, const BufferPtr& b) const {
    return std::less<>()(a, static_cast<const void*>(b->data));
}

void References::add(const BufferPtr& kept, const Buffer& holder) {
    // Memory that mentions itself needs no help, and would never be freed.
    if (!kept || !kept->data || kept.get() == &holder) return;
    std::lock_guard lock(mutex_);
    buffers_.insert(kept);
    if (buffers_.size() > prune_at_) prune(holder);
}

void References::add_all(const References& of, const Buffer& holder) {
    if (&of == this) return;
    for (const BufferPtr& kept : of.all()) add(kept, holder);
}

std::vector<BufferPtr> References::all() const {
    std::lock_guard lock(mutex_);
    return {buffers_.begin(), buffers_.end()};
}

// Buffers do not overlap but where they stand for one foreign memory, so the first look backwards finds it.
References::Set::const_iterator References::locate(const void* address) const {
    for (auto next = buffers_.upper_bound(address); next != buffers_.begin();) {
        --next;
        auto* begin = static_cast<const std::byte*>((*next)->data);
        if (std::less<>()(address, static_cast<const void*>(begin + (*next)->size_bytes))) return next;
    }
    return buffers_.end();
}

BufferPtr References::find(const void* address) const {
    std::lock_guard lock(mutex_);
    auto found = locate(address);
    return found == buffers_.end() ? nullptr : *found;
}

std::size_t References::size() const {
    std::lock_guard lock(mutex_);
    return buffers_.size();
}

// Keeps what some aligned word of the holder's memory points into.
void References::prune(const Buffer& holder) {
    Set used;
    auto* begin = static_cast<const std::byte*>(holder.data);
    auto skip = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(begin) % alignof(void*));
    for (std::int64_t at = skip; at + static_cast<std::int64_t>(sizeof(void*)) <= holder.size_bytes;
         at += sizeof(void*)) {
        const void* address = nullptr;
        std::memcpy(&address, begin + at, sizeof address);
        if (auto found = locate(address); found != buffers_.end()) used.insert(*found);
    }
    buffers_ = std::move(used);
    prune_at_ = std::max(kFewest, 2 * buffers_.size());
}

}  // namespace weft::runtime
