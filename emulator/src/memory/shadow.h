#pragma once
// Detects races: two plain accesses of one byte by different threads of a launch, at least one of them a store, without
// a barrier between them.
//
// For each four bytes there are two words, for the last writer and the last reader. An actor is a thread at a time:
// launch, block, thread, barriers passed by the block, synchronisations of the warp, and the accessed bytes among the
// four. Accesses of one block are ordered if a barrier is between them; of one warp, also if a synchronisation of the
// warp is. For several readers only their plurality is kept; for accesses of different bytes only the last. So races
// may be missed, but none is false.
//
// A thread is excluded after it has passed a fence, or used an atomic with acquire or release: the order that flags and
// locks give its accesses is not tracked. Equal stores of several threads count as no race.
#include <atomic>
#include <cstdint>

namespace weft::emulator {

struct Actor {
    // low to high: synchronisations of the warp 8, bytes 4, barriers 8, thread 10, block 18, launch 14, two marks
    uint64_t bits = 0;

    static constexpr uint64_t kBytes = uint64_t(0xf) << 8;
    static constexpr uint64_t kSeveralThreads = uint64_t(1) << 62, kSeveralBlocks = uint64_t(1) << 63;
    static constexpr uint32_t kMostSyncs = 0xff, kMostBarriers = 0xff, kLaunches = 0x3fff;

    static Actor make(uint32_t launch, uint32_t block, uint32_t thread, uint32_t barriers, uint32_t syncs) {
        const auto least = [](uint64_t a, uint64_t b) { return a < b ? a : b; };
        return {least(syncs, kMostSyncs) | kBytes | least(barriers, kMostBarriers) << 12 |
                uint64_t(thread & 0x3ff) << 20 | uint64_t(block & 0x3ffff) << 30 | uint64_t(launch & kLaunches) << 48};
    }
    // For a lane of this warp, given lane 0: an access of `count` bytes from `first`.
    Actor of_lane(int lane, uint64_t first, uint32_t count) const {
        const uint64_t bytes = uint64_t((1u << count) - 1) << (8 + first);
        return {((bits + (uint64_t(lane) << 20)) & ~kBytes) | bytes};
    }
    uint32_t syncs() const { return bits & 0xff; }
    uint64_t bytes() const { return bits & kBytes; }
    uint32_t barriers() const { return bits >> 12 & 0xff; }
    uint32_t thread() const { return bits >> 20 & 0x3ff; }
    uint32_t block() const { return bits >> 30 & 0x3ffff; }
    uint32_t launch() const { return bits >> 48 & kLaunches; }
    bool several_threads() const { return bits & kSeveralThreads; }
    bool several_blocks() const { return bits & kSeveralBlocks; }

    bool meets(Actor other) const { return launch() == other.launch() && (bytes() & other.bytes()); }
    bool is_same_thread_and_time(Actor other) const { return ((bits ^ other.bits) & ~kBytes) == 0; }
};

struct ShadowWord {
    std::atomic<uint64_t> writer, reader;
};

// Whether a barrier, or a synchronisation of their warp, may be between two accesses of one block.
inline bool may_be_ordered(Actor then, Actor now) {
    if (then.barriers() != now.barriers() || now.barriers() == Actor::kMostBarriers) return true;
    return then.thread() / 32 == now.thread() / 32 && (then.syncs() != now.syncs() || now.syncs() == Actor::kMostSyncs);
}

// Whether an access of `then` is not ordered before one of `now`.
inline bool conflicts(Actor then, Actor now) {
    if (!then.meets(now)) return false;
    if (then.several_blocks() || then.block() != now.block()) return true;
    if (may_be_ordered(then, now)) return false;
    return then.several_threads() || then.thread() != now.thread();
}

inline Actor writer_of(const ShadowWord& word) { return {word.writer.load(std::memory_order_relaxed)}; }
inline Actor reader_of(const ShadowWord& word) { return {word.reader.load(std::memory_order_relaxed)}; }

// The record after an access, given the record before.
inline Actor joined(Actor old, Actor now) {
    return old.is_same_thread_and_time(now) ? Actor{old.bits | now.bits} : now;
}

// Notes a read; false if it races with a store.
inline bool note_read(ShadowWord& word, Actor now) {
    const Actor old = reader_of(word);
    Actor next = joined(old, now);
    if (next.bits == now.bits && old.meets(now)) {
        const uint64_t by_both = now.bits & (old.bits | ~Actor::kBytes);
        if (old.several_blocks())
            next = old;
        else if (old.block() != now.block())
            next.bits = by_both | Actor::kSeveralBlocks;
        else if (!may_be_ordered(old, now) && old.several_threads())
            next = old;
        else if (!may_be_ordered(old, now) && old.thread() != now.thread())
            next.bits = by_both | Actor::kSeveralThreads;
    }
    if (next.bits != old.bits) word.reader.store(next.bits, std::memory_order_relaxed);
    return !conflicts(writer_of(word), now);
}

// Whether a store races with no access. It is checked before the store, and noted after it: a thread that sees the note
// also sees the value, so that of equal stores each sees that it changes nothing.
inline bool may_write(const ShadowWord& word, Actor now) {
    return !conflicts({word.writer.load(std::memory_order_acquire)}, now) && !conflicts(reader_of(word), now);
}
inline void note_write(ShadowWord& word, Actor now) {
    word.writer.store(joined(writer_of(word), now).bits, std::memory_order_release);
}

}  // namespace weft::emulator
