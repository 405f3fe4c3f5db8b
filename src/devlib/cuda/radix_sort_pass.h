// The kernels of radix sorts for one type of keys; radix_sort.h describes the method.
//
// `Stored` is an unsigned integer of the keys' size. Integers and floats differ by the template parameter kIsFloat: the
// code of an integer costs one instruction.
#pragma once

#include "devlib/cuda/radix_sort.h"
#include "devlib/cuda/sort_places.h"

namespace weft::devlib {

template <typename Stored>
struct KeyWord {
    using type = UInt32;
};
template <>
struct KeyWord<UInt64> {
    using type = UInt64;
};

// The digit of a pass.
template <typename Key, bool kIsFloat, int kKeyBits>
struct DigitOfKey {
    Key flip, minus_zero, zero, infinity;
    int shift;
    UInt32 mask;

    DigitOfKey(const KeyOrder& order, int first_bit, int end_bit)
        : flip(Key(order.flip)),
          minus_zero(Key(order.minus_zero)),
          zero(Key(order.zero)),
          infinity(Key(order.infinity)),
          shift(first_bit),
          mask(end_bit - first_bit < kDigitBits ? (1u << (end_bit - first_bit)) - 1 : kDigits - 1) {}

    UInt32 operator()(Key key) const {
        Key code = key;
        if constexpr (kIsFloat) {
            constexpr Key kSign = Key(1) << (kKeyBits - 1), kAll = kSign | (kSign - 1);
            code = key & kSign ? kAll ^ key : key | kSign;
            if (code == minus_zero) code = zero;
            if ((key & ~kSign) > infinity) code = kAll;
        } else {
            code ^= flip;
        }
        return UInt32(code >> shift) & mask;
    }
};

// ---- counts ----

template <typename Stored, bool kIsFloat>
[[gnu::always_inline]] inline void count_digits(const RadixSortPlan& plan) {
    using Key = typename KeyWord<Stored>::type;
    constexpr int kPasses = sizeof(Stored) * 8 / kDigitBits, kItems = kSortTile / kSortThreads;
    WEFT_SHARED UInt32 found[kPasses * kDigits];
    const int thread = int(block_thread()), words = plan.passes * kDigits;
    const auto* const keys = static_cast<const Stored*>(plan.keys);
    const auto add_up = [&](UInt32 owner) {
        __syncthreads();
        for (int word = thread; word < words; word += kSortThreads) {
            if (const UInt32 number = found[word]; number != 0)
                add_to(plan.digits + owner * UInt32(words) + word, number);
            found[word] = 0;
        }
        __syncthreads();
    };
    for (int word = thread; word < words; word += kSortThreads) found[word] = 0;
    __syncthreads();
    const UInt64 tiles = tiles_of(plan);
    const auto tile_of_block = [&](std::int64_t block) { return UInt32(tiles * UInt64(block) / UInt64(blocks())); };
    const UInt32 end = tile_of_block(block_index() + 1);
    UInt32 owner = 0;
    bool is_owned = false;
    for (UInt32 tile = tile_of_block(block_index()); tile < end; ++tile) {
        const UInt32 of_tile = owner_of(plan, tile);
        if (is_owned && of_tile != owner) add_up(owner);
        owner = of_tile, is_owned = true;
        const SortSegment segment = segment_of(plan, owner);
        const UInt32 first = (tile - segment.first_tile) * kSortTile, left = segment.count - first;
        const Stored* const from = keys + segment.begin + first + thread;
        Key own[kItems];
#pragma unroll
        for (int k = 0; k < kItems; ++k)
            own[k] = UInt32(thread + k * kSortThreads) < left ? Key(from[k * kSortThreads]) : Key(0);
        for (int pass = 0; pass < plan.passes; ++pass) {
            const DigitOfKey<Key, kIsFloat, sizeof(Stored) * 8> digit(plan.order, plan.begin_bit + pass * kDigitBits,
                                                                      plan.end_bit);
#pragma unroll
            for (int k = 0; k < kItems; ++k)
                if (UInt32(thread + k * kSortThreads) < left) count_one(found + pass * kDigits + digit(own[k]));
        }
    }
    if (is_owned) add_up(owner);
}

// ---- a pass ----

template <typename Stored, typename Value, int kThreads>
[[gnu::always_inline]] inline void copy_tile(const RadixSortPlan& plan, Int32 step, UInt32 first, UInt32 count) {
    const bool is_second = step & kStepReadsSecond;
    const auto* const keys = static_cast<const Stored*>(is_second ? plan.other_keys : plan.keys);
    const auto* const values = static_cast<const Value*>(is_second ? plan.other_values : plan.values);
    auto* const to_keys = static_cast<Stored*>(is_second ? plan.keys : plan.other_keys);
    auto* const to_values = static_cast<Value*>(is_second ? plan.values : plan.other_values);
    const bool makes_positions = plan.makes_positions && step & kStepIsFirst;
#pragma unroll 4
    for (UInt32 at = UInt32(block_thread()); at < count; at += kThreads) {
        to_keys[first + at] = keys[first + at];
        to_values[first + at] = makes_positions ? Value(first + at) : values[first + at];
    }
}

// The place of this tile's first key of a digit: that of the closest tile before whose place is known, and the keys of
// those between. They have begun before this one, so that the wait ends.
inline UInt32 place_after_earlier_tiles(const UInt32* progress) {
    UInt32 sum = 0;
    for (;;) {
        progress -= kDigits;
        UInt32 known = 0;
        do known = __scoped_atomic_load_n(progress, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
        while (known == 0);
        if (known & kIsPlace) return sum + (known & ~kIsPlace);
        sum += known - 1;
    }
}

// Calls item(k, its index in the tile) for this thread's items that there are. Most tiles are full.
template <int kThreads, typename Item>
[[gnu::always_inline]] inline void for_own_items(UInt32 count, const Item& item) {
    const auto thread = UInt32(block_thread());
    if (count == kSortTile) {
#pragma unroll
        for (int k = 0; k < kSortTile / kThreads; ++k) item(k, thread + UInt32(k * kThreads));
    } else {
#pragma unroll
        for (int k = 0; k < kSortTile / kThreads; ++k)
            if (thread + UInt32(k * kThreads) < count) item(k, thread + UInt32(k * kThreads));
    }
}

template <typename Stored, bool kIsFloat, typename Value>
[[gnu::always_inline]] inline void sort_tile(const RadixSortPlan& plan) {
    using Key = typename KeyWord<Stored>::type;
    constexpr int kThreads = sort_threads(sizeof(Stored), sizeof(Value), kIsFloat);
    constexpr int kItems = kSortTile / kThreads, kWarps = kThreads / kLanes;
    constexpr int kWords = int((sizeof(Key) > sizeof(Value) ? sizeof(Key) : sizeof(Value)) / 4) * kSortTile;
    static_assert(kWords >= kWarps * kDigits);
    // Counters by warp and digit, then the tile's keys, then its values.
    WEFT_SHARED UInt64 room[kWords / 2];
    WEFT_SHARED UInt32 shifts[kDigits];  // from a digit's place in the tile to that in the segment
    WEFT_SHARED UInt32 own_tile;
    const int thread = int(block_thread());
    const std::int64_t progress_words = std::int64_t(plan.most_tiles) * kDigits;
    Int32 step = plan.segments ? 0 : plan.steps[plan.pass];
    if (!plan.segments && step == 0) return;
    auto* const counters = reinterpret_cast<Shared<UInt32>>(&room[0]);
    if (thread == 0) own_tile = add_to(plan.next_tile + plan.pass, 1);
#pragma unroll
    for (int word = 0; word < kWarps * kDigits; word += kThreads) counters[word + thread] = 0;
    __syncthreads();
    const UInt32 tile = own_tile;
    if (tile >= tiles_of(plan)) return;
    const UInt32 owner = owner_of(plan, tile);
    const SortSegment segment = segment_of(plan, owner);
    const int segment_pass = int(owner) * plan.passes + plan.pass;
    if (plan.segments) step = plan.steps[segment_pass];
    if (step == 0) return;
    const UInt32 first = segment.begin + (tile - segment.first_tile) * kSortTile;
    const UInt32 count = least32(segment.begin + segment.count - first, kSortTile);
    if (step & kStepCopies) return copy_tile<Stored, Value, kThreads>(plan, step, first, count);

    // A warp has items in a row. Missing ones get the last digit, behind all others of the tile.
    const bool is_second = step & kStepReadsSecond;
    const UInt32 own_at = UInt32(thread / kLanes * (kLanes * kItems) + thread % kLanes);
    const DigitOfKey<Key, kIsFloat, sizeof(Stored) * 8> digit_of(plan.order, plan.begin_bit + plan.pass * kDigitBits,
                                                                 plan.end_bit);
    auto* const own_counters = counters + thread / kLanes * kDigits;
    Key keys[kItems];
    {
        const auto* const from = static_cast<const Stored*>(is_second ? plan.other_keys : plan.keys) + first + own_at;
        if (count == kSortTile) {
#pragma unroll
            for (int k = 0; k < kItems; ++k) keys[k] = Key(from[k * kLanes]);
        } else {
#pragma unroll
            for (int k = 0; k < kItems; ++k)
                keys[k] = own_at + UInt32(k * kLanes) < count ? Key(from[k * kLanes]) : Key(plan.order.last);
        }
    }
#pragma unroll
    for (int k = 0; k < kItems; ++k) count_one(own_counters + digit_of(keys[k]));
    __syncthreads();

    // The first threads have a digit each: its place in the tile for each warp, and the tile's number of keys for later
    // tiles.
    const bool has_digit = kThreads == kDigits || thread < kDigits;
    UInt32 total = 0;
    UInt32 before[kWarps];
    if (has_digit) {
#pragma unroll
        for (int warp = 0; warp < kWarps; ++warp) {
            before[warp] = total;
            total += counters[warp * kDigits + thread];
        }
    }
    const UInt32 start = sum_before<kThreads>(total);
    UInt32* const progress = plan.progress + plan.pass * progress_words + std::int64_t(tile) * kDigits + thread;
    const bool is_first_tile = tile == segment.first_tile;
    UInt32 base = 0;
    if (has_digit) {
#pragma unroll
        for (int warp = 0; warp < kWarps; ++warp) counters[warp * kDigits + thread] = start + before[warp];
        if (UInt32(thread) == digit_of.mask) total -= kSortTile - count;
        base = plan.digits[std::int64_t(segment_pass) * kDigits + thread];
        tell(progress, is_first_tile ? kIsPlace | (base + total) : total + 1);
    }
    __syncthreads();

    UInt32 places[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
        const UInt32 digit = digit_of(keys[k]), same = lanes_with(digit);
        const UInt32 rank = UInt32(__builtin_popcount(same & lanes_up_to_own()));
        const int leader = kLanes - 1 - __builtin_clz(same);
        UInt32 place = 0;
        if (thread % kLanes == leader) {
            place = own_counters[digit];
            own_counters[digit] = place + rank;
        }
        place = from_lane(place, leader);
        __nvvm_bar_warp_sync(kAllLanes);
        places[k] = place + rank - 1;
    }
    if (has_digit) {
        UInt32 place = base;
        if (!is_first_tile) {
            place = place_after_earlier_tiles(progress);
            tell(progress, kIsPlace | (place + total));
        }
        shifts[thread] = segment.begin + place - start;
    }
    __syncthreads();

    // Keys and values go through shared memory, so that threads in a row write pairs of one digit in a row.
    auto* const tile_keys = reinterpret_cast<Shared<Key>>(&room[0]);
    auto* const tile_values = reinterpret_cast<Shared<Value>>(&room[0]);
#pragma unroll
    for (int k = 0; k < kItems; ++k) tile_keys[places[k]] = keys[k];
    Value values[kItems];
    if (plan.makes_positions && step & kStepIsFirst) {
#pragma unroll
        for (int k = 0; k < kItems; ++k) values[k] = Value(first + own_at + UInt32(k * kLanes));
    } else {
        const auto* const from =
            static_cast<const Value*>(is_second ? plan.other_values : plan.values) + first + own_at;
        if (count == kSortTile) {
#pragma unroll
            for (int k = 0; k < kItems; ++k) values[k] = from[k * kLanes];
        } else {
#pragma unroll
            for (int k = 0; k < kItems; ++k)
                values[k] = own_at + UInt32(k * kLanes) < count ? from[k * kLanes] : Value(0);
        }
    }
    __syncthreads();
    UInt32 to[kItems];
    auto* const sorted_keys = static_cast<Stored*>(is_second ? plan.keys : plan.other_keys);
    for_own_items<kThreads>(count, [&](int k, UInt32 at) {
        const Key key = tile_keys[at];
        to[k] = shifts[digit_of(key)] + at;
        sorted_keys[to[k]] = Stored(key);
    });
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) tile_values[places[k]] = values[k];
    __syncthreads();
    auto* const sorted_values = static_cast<Value*>(is_second ? plan.values : plan.other_values);
    for_own_items<kThreads>(count, [&](int k, UInt32 at) { sorted_values[to[k]] = tile_values[at]; });
}

}  // namespace weft::devlib

#define WEFT_RADIX_SORT_OF(name, stored, is_float)                                                         \
    extern "C" [[clang::device_kernel]] void weft_sort_digits_##name(weft::devlib::RadixSortPlan plan) {   \
        weft::devlib::count_digits<stored, is_float>(plan);                                                \
    }                                                                                                      \
    extern "C" [[clang::device_kernel]] void weft_sort_pass_##name##_4(weft::devlib::RadixSortPlan plan) { \
        weft::devlib::sort_tile<stored, is_float, weft::devlib::UInt32>(plan);                             \
    }                                                                                                      \
    extern "C" [[clang::device_kernel]] void weft_sort_pass_##name##_8(weft::devlib::RadixSortPlan plan) { \
        weft::devlib::sort_tile<stored, is_float, weft::devlib::UInt64>(plan);                             \
    }
