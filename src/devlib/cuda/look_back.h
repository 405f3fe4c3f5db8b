// Sums over all blocks of a launch in one pass: a block publishes the sum of its tile, and finds the sum of the tiles
// before its own (D. Merrill, M. Garland, Single-pass parallel prefix scan with decoupled look-back, 2016). Here the
// order of additions is fixed: tiles are added in groups of kScanFan, groups in spans of kScanFan groups, and spans one
// after the other. runtime/cpu/primitives/scan.cpp adds in the same order.
//
// Blocks take the numbers of their tiles from a ticket, so that a block waits only for blocks that have begun.
//
// The state needs no reset between launches in one stream: entries carry the number of the launch. It is all zeros
// before the first launch.
#pragma once

#include <cstdint>

#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

using StateWord = std::uint64_t;

struct Ticket {
    std::uint32_t number;
    std::uint32_t launch;  // the mark of this launch's entries, not 0
};

// For one thread of each block. The word holds the number of the launch and the next ticket. The block that takes the
// last ticket prepares the word for the next launch, since no other block of this one needs it.
inline Ticket take_ticket(StateWord* state) {
    const StateWord taken = __scoped_atomic_fetch_add(state, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    const Ticket ticket = {static_cast<std::uint32_t>(taken), static_cast<std::uint32_t>(taken >> 32) + 1};
    if (ticket.number == static_cast<std::uint32_t>(__nvvm_read_ptx_sreg_nctaid_x()) - 1) {
        const std::uint32_t next = ticket.launch == 0xFFFFFFFF ? 0 : ticket.launch;
        __scoped_atomic_store_n(state, StateWord(next) << 32, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    }
    return ticket;
}

// A value that one block publishes and others wait for. Each word holds 32 bits of the value and the mark of the
// launch, and is written and read whole. A reader has the value as soon as all words carry the mark, so that no order
// of memory is needed.
template <typename Value>
struct Entry {
    static constexpr int kWords = sizeof(Value) / 4;
    StateWord words[kWords];

    void publish(const Value& value, std::uint32_t launch) {
        struct Parts {
            std::uint32_t parts[kWords];
        };
        const auto bits = __builtin_bit_cast(Parts, value);
        for (int i = 0; i < kWords; ++i)
            __scoped_atomic_store_n(words + i, StateWord(bits.parts[i]) << 32 | launch, __ATOMIC_RELAXED,
                                    __MEMORY_SCOPE_DEVICE);
    }
};

template <typename Value>
class Reader {
public:
    // Without `is_wanted`, the value is Value{} and the entry is not touched.
    Reader(Entry<Value>* entry, bool is_wanted, std::uint32_t launch)
        : entry_(entry), is_wanted_(is_wanted), launch_(launch) {}

    // Reads once, so that wait() need not if the value is there.
    void begin() {
        if (is_wanted_) load();
    }
    Value wait() {
        if (!is_wanted_) return Value{};
        while (!is_complete()) load();
        struct Parts {
            std::uint32_t parts[Entry<Value>::kWords];
        } bits;
        for (int i = 0; i < Entry<Value>::kWords; ++i) bits.parts[i] = static_cast<std::uint32_t>(words_[i] >> 32);
        return __builtin_bit_cast(Value, bits);
    }

private:
    void load() {
        for (int i = 0; i < Entry<Value>::kWords; ++i)
            words_[i] = __scoped_atomic_load_n(entry_->words + i, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    }
    bool is_complete() const {
        bool is_marked = true;
        for (int i = 0; i < Entry<Value>::kWords; ++i) is_marked &= static_cast<std::uint32_t>(words_[i]) == launch_;
        return is_marked;
    }

    Entry<Value>* entry_;
    bool is_wanted_;
    std::uint32_t launch_;
    StateWord words_[Entry<Value>::kWords] = {};
};

// The running sum over the lanes of a warp, each lane's own number included: 5 steps of Kogge and Stone.
template <typename Value>
Value scan_lanes(Value value, int lane) {
    for (int distance = 1; distance < kWarp; distance *= 2) {
        const Value other = from_lane_above(value, distance);
        if (lane >= distance) value = other + value;
    }
    return value;
}

// The part of the state for one sequence of tiles.
template <typename Value>
struct Chain {
    Entry<Value>*tiles, *groups, *spans;

    Chain(StateWord* state, std::int64_t chain, std::int64_t count) {
        const std::int64_t all_groups = (count + kScanFan - 1) / kScanFan;
        const std::int64_t all_spans = (all_groups + kScanFan - 1) / kScanFan;
        tiles = reinterpret_cast<Entry<Value>*>(state + kScanHeaderWords) + chain * (count + all_groups + all_spans);
        groups = tiles + count;
        spans = groups + all_groups;
    }

    // The sum of the tiles before `tile`, whose own sum is `total`, in all lanes of the warp that calls it.
    Value before(std::int64_t tile, const Value& total, std::uint32_t launch) const {
        const int lane = lane_in_warp();
        const auto in_group = static_cast<int>(tile % kScanFan), in_span = static_cast<int>(tile / kScanFan % kScanFan);
        const std::int64_t group = tile / kScanFan, span = group / kScanFan;
        const bool ends_group = in_group == kScanFan - 1;
        if (lane == 0 && !ends_group) tiles[tile].publish(total, launch);
        Reader<Value> tile_sum(tiles + group * kScanFan + lane, lane < in_group, launch);
        Reader<Value> group_sum(groups + span * kScanFan + lane, lane < in_span, launch);
        Reader<Value> span_sum(spans + span - 1, span > 0, launch);  // of all spans before
        // The reads are in flight together, unless they would take too many registers.
        tile_sum.begin();
        if constexpr (sizeof(Value) <= 8) {
            group_sum.begin();
            span_sum.begin();
        }
        const Value of_tiles = last_lane_before(scan_lanes(tile_sum.wait(), lane), in_group);
        const Value of_group = of_tiles + total;
        if (lane == 0 && ends_group && in_span < kScanFan - 1) groups[group].publish(of_group, launch);
        const Value of_groups = last_lane_before(scan_lanes(group_sum.wait(), lane), in_span);
        const Value of_spans = span_sum.wait() + of_groups;
        if (lane == 0 && ends_group && in_span == kScanFan - 1) spans[span].publish(of_spans + of_group, launch);
        return of_spans + of_tiles;
    }

private:
    static Value last_lane_before(const Value& value, int lane) {
        const Value found = from_lane(value, lane - 1);
        return lane == 0 ? Value{} : found;
    }
};

}  // namespace weft::devlib
