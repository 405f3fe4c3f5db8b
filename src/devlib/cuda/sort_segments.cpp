// Sorts of segments; sort_segments.h describes the method.
#include "devlib/cuda/sort_segments.h"

#include "devlib/cuda/sort_places.h"

namespace weft::devlib {

namespace {

// ---- lists ----

void list_segments(const SegmentsPlan& plan) {
    for (std::int64_t first = warp_index() * kLanes; first < plan.segments; first += warps() * kLanes) {
        const std::int64_t number = first + lane();
        Int32 begin = 0, end = 0;
        if (number < plan.segments) begin = plan.begins[number], end = plan.ends[number];
        if (begin < 0 || end < begin || end > plan.count) {
            if (is_first(plan.wrong, number + 1)) plan.wrong[1] = begin, plan.wrong[2] = end;
            begin = end = 0;
        }
        const auto count = UInt32(end - begin);
        // Segments that overlap have more pairs than there are. The lists have no room for them.
        const bool is_listed =
            count > kMostOfWarp &&
            add_to(reinterpret_cast<UInt64*>(plan.counts + kListedPairs), count) + count <= UInt64(plan.count);
        UInt32 large = 0, tiles = 0, first_tile = 0;
        if (is_listed && count > kMostOfBlock) {
            tiles = (count + kSortTile - 1) / kSortTile;
            large = add_to(plan.counts + kLargeSegments, 1), first_tile = add_to(plan.counts + kLargeTiles, tiles);
            plan.large[large] = {UInt32(begin), count, first_tile};
        } else if (is_listed) {
            plan.middle[add_to(plan.counts + kMiddleSegments, 1)] = UInt32(number);
        }
        // The warp writes the owners of one large segment after the other.
        for (UInt32 left = __nvvm_vote_ballot_sync(kAllLanes, tiles != 0); left != 0; left &= left - 1) {
            const int from = __builtin_ctz(left);
            const UInt32 owner = from_lane(large, from), at = from_lane(first_tile, from);
            const UInt32 end_tile = at + from_lane(tiles, from);
            for (UInt32 tile = at + UInt32(lane()); tile < end_tile; tile += kLanes) plan.owners[tile] = owner;
        }
    }
}

// ---- merge sorts in shared memory ----

template <int kThreads>
void sync_group() {
    if constexpr (kThreads == kLanes)
        __nvvm_bar_warp_sync(kAllLanes);
    else
        __syncthreads();
}

UInt64 load_key(const SegmentsPlan& plan, std::int64_t at) {
    const char* const from = plan.keys + at * plan.key_bytes;
    switch (plan.key_bytes) {
        case 1:
            return *reinterpret_cast<const std::uint8_t*>(from);
        case 2:
            return *reinterpret_cast<const std::uint16_t*>(from);
        case 4:
            return *reinterpret_cast<const UInt32*>(from);
        default:
            return *reinterpret_cast<const UInt64*>(from);
    }
}

UInt64 code_of(const SegmentsPlan& plan, UInt64 key) {
    if (!plan.is_float) return key ^ plan.order.flip;
    const UInt64 sign = UInt64(1) << (8 * plan.key_bytes - 1), all = sign | (sign - 1);
    const UInt64 code = key & sign ? all ^ key : key | sign;
    if (code == plan.order.minus_zero) return plan.order.zero;
    return (key & ~sign) > plan.order.infinity ? all : code;
}

// Moves the element at from(k) to to(k) for each of the thread's items with has(k). All threads of the group take part.
template <typename Word, int kThreads, int kItems, typename Has, typename From, typename To>
void permute_words(char* data, std::int64_t bytes, const Has& has, const From& from, const To& to) {
    for (std::int64_t at = 0; at < bytes; at += std::int64_t(sizeof(Word))) {
        Word words[kItems];
#pragma unroll
        for (int k = 0; k < kItems; ++k)
            words[k] = has(k) ? *reinterpret_cast<const Word*>(data + from(k) * bytes + at) : Word(0);
        sync_group<kThreads>();
#pragma unroll
        for (int k = 0; k < kItems; ++k)
            if (has(k)) *reinterpret_cast<Word*>(data + to(k) * bytes + at) = words[k];
    }
}

template <int kThreads, int kItems, typename Has, typename From, typename To>
void permute(char* data, std::int64_t bytes, const Has& has, const From& from, const To& to) {
    const auto unaligned = UInt64(bytes) | reinterpret_cast<UInt64>(data);
    if (unaligned % 8 == 0)
        permute_words<UInt64, kThreads, kItems>(data, bytes, has, from, to);
    else if (unaligned % 4 == 0)
        permute_words<UInt32, kThreads, kItems>(data, bytes, has, from, to);
    else
        permute_words<std::uint8_t, kThreads, kItems>(data, bytes, has, from, to);
}

template <int kThreads, int kItems, typename Has, typename From, typename To>
void permute_pairs(const SegmentsPlan& plan, const Has& has, const From& from, const To& to) {
    permute<kThreads, kItems>(plan.keys, plan.key_bytes, has, from, to);
    permute<kThreads, kItems>(plan.values, plan.value_bytes, has, from, to);
    sync_group<kThreads>();
}

// At most a pair for each lane: its place is the number of smaller keys and of equal ones before it.
template <typename Code>
void sort_by_counting(const SegmentsPlan& plan, std::int64_t begin, int count) {
    const int own = int(lane());
    const bool is_there = own < count;
    const Code code = is_there ? Code(code_of(plan, load_key(plan, begin + own))) : Code(0);
    int place = 0;
    for (int other = 0; other < count; ++other) {
        Code theirs = from_lane(UInt32(code), other);
        if constexpr (sizeof(Code) == 8) theirs |= Code(from_lane(UInt32(code >> 32), other)) << 32;
        place += theirs < code || (theirs == code && other < own);
    }
    permute_pairs<kLanes, 1>(
        plan, [&](int) { return is_there; }, [&](int) { return begin + own; }, [&](int) { return begin + place; });
}

// A gap after the items of each thread, so that threads in a row use different banks.
constexpr int slot(int item) { return item + item / kMergeItems; }
constexpr int slots(int threads) { return threads * (kMergeItems + 1); }

// Merges runs of sorted codes; `numbers` are their places before. Of two equal codes the first run's comes first. Each
// thread finds its part of a merge by bisection (Green, McColl and Bader, "GPU Merge Path", 2012).
template <typename Code, int kThreads>
void merge_sort(const SegmentsPlan& plan, std::int64_t begin, int count, int thread, Shared<Code> codes,
                Shared<std::uint16_t> numbers) {
#pragma unroll
    for (int k = 0; k < kMergeItems; ++k) {
        const int i = thread + k * kThreads;
        codes[slot(i)] = i < count ? Code(code_of(plan, load_key(plan, begin + i))) : ~Code(0);
    }
    sync_group<kThreads>();
    const int first = thread * kMergeItems;
    Code own[kMergeItems];
    std::uint16_t own_numbers[kMergeItems];
#pragma unroll
    for (int k = 0; k < kMergeItems; ++k) {
        own[k] = codes[slot(first + k)];
        own_numbers[k] = std::uint16_t(first + k);
    }
#pragma unroll
    for (int round = 0; round < kMergeItems; ++round) {
#pragma unroll
        for (int k = round % 2; k + 1 < kMergeItems; k += 2) {
            const bool swaps = own[k] > own[k + 1];
            const Code low = swaps ? own[k + 1] : own[k], high = swaps ? own[k] : own[k + 1];
            const std::uint16_t low_number = swaps ? own_numbers[k + 1] : own_numbers[k];
            const std::uint16_t high_number = swaps ? own_numbers[k] : own_numbers[k + 1];
            own[k] = low, own[k + 1] = high, own_numbers[k] = low_number, own_numbers[k + 1] = high_number;
        }
    }
    for (int width = kMergeItems;; width *= 2) {
#pragma unroll
        for (int k = 0; k < kMergeItems; ++k) {
            codes[slot(first + k)] = own[k];
            numbers[slot(first + k)] = own_numbers[k];
        }
        sync_group<kThreads>();
        if (width >= count) break;
        const int low = first & ~(2 * width - 1), high = low + width, diagonal = first - low;
        int least_of_first = diagonal > width ? diagonal - width : 0,
            most_of_first = diagonal < width ? diagonal : width;
        while (least_of_first < most_of_first) {
            const int middle = (least_of_first + most_of_first) / 2;
            if (codes[slot(low + middle)] <= codes[slot(high + diagonal - 1 - middle)])
                least_of_first = middle + 1;
            else
                most_of_first = middle;
        }
        int a = low + least_of_first, b = high + diagonal - least_of_first;
        const int end_a = high, end_b = high + width;
        Code at_a = a < end_a ? codes[slot(a)] : Code(0), at_b = b < end_b ? codes[slot(b)] : Code(0);
#pragma unroll
        for (int k = 0; k < kMergeItems; ++k) {
            const bool takes_a = a < end_a && (b >= end_b || at_a <= at_b);
            own[k] = takes_a ? at_a : at_b;
            own_numbers[k] = numbers[slot(takes_a ? a : b)];
            if (takes_a) {
                ++a;
                at_a = a < end_a ? codes[slot(a)] : Code(0);
            } else {
                ++b;
                at_b = b < end_b ? codes[slot(b)] : Code(0);
            }
        }
        sync_group<kThreads>();
    }
    permute_pairs<kThreads, kMergeItems>(
        plan, [&](int k) { return thread + k * kThreads < count; },
        [&](int k) { return begin + numbers[slot(thread + k * kThreads)]; },
        [&](int k) { return begin + thread + k * kThreads; });
}

template <typename Code>
void sort_short_segments(const SegmentsPlan& plan) {
    WEFT_SHARED Code codes[kSortWarps * slots(kLanes)];
    WEFT_SHARED std::uint16_t numbers[kSortWarps * slots(kLanes)];
    const int room = int(block_thread()) / kLanes * slots(kLanes);
    for (std::int64_t number = warp_index(); number < plan.segments; number += warps()) {
        const Int32 begin = plan.begins[number], end = plan.ends[number];
        if (begin < 0 || end > plan.count || end - begin < 2 || end - begin > kMostOfWarp) continue;
        if (end - begin <= kLanes)
            sort_by_counting<Code>(plan, begin, end - begin);
        else
            merge_sort<Code, kLanes>(plan, begin, end - begin, int(lane()), codes + room, numbers + room);
    }
}

template <typename Code>
void sort_middle_segments(const SegmentsPlan& plan) {
    WEFT_SHARED Code codes[slots(kSortThreads)];
    WEFT_SHARED std::uint16_t numbers[slots(kSortThreads)];
    const UInt32 segments = plan.middle ? plan.counts[kMiddleSegments] : 1;
    for (auto at = UInt32(block_index()); at < segments; at += UInt32(blocks())) {
        Int32 begin = 0, end = Int32(plan.count);
        if (plan.middle) begin = plan.begins[plan.middle[at]], end = plan.ends[plan.middle[at]];
        merge_sort<Code, kSortThreads>(plan, begin, end - begin, int(block_thread()), codes, numbers);
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_segments_list(SegmentsPlan plan) { list_segments(plan); }
[[clang::device_kernel]] void weft_segments_short_32(SegmentsPlan plan) { sort_short_segments<UInt32>(plan); }
[[clang::device_kernel]] void weft_segments_short_64(SegmentsPlan plan) { sort_short_segments<UInt64>(plan); }
[[clang::device_kernel]] void weft_segments_middle_32(SegmentsPlan plan) { sort_middle_segments<UInt32>(plan); }
[[clang::device_kernel]] void weft_segments_middle_64(SegmentsPlan plan) { sort_middle_segments<UInt64>(plan); }

}  // extern "C"

}  // namespace weft::devlib
