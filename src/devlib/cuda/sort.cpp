// Sorts of pairs: keys become unsigned numbers of the same order (as in runtime/cpu/primitives/sort.cpp), which are
// sorted with their positions byte by byte, from the lowest; keys and values are then gathered by the positions. Equal
// keys keep their order. With segments, the last bytes are those of the segment's number.
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

std::uint64_t load_bits(const char* from, std::int64_t bytes) {
    switch (bytes) {
        case 1:
            return *reinterpret_cast<const std::uint8_t*>(from);
        case 2:
            return *reinterpret_cast<const std::uint16_t*>(from);
        case 4:
            return *reinterpret_cast<const std::uint32_t*>(from);
        default:
            return *reinterpret_cast<const std::uint64_t*>(from);
    }
}

// -0 becomes 0, and all NaNs one number beyond all others.
std::uint64_t code_of(std::uint64_t bits, ScalarFacts facts) {
    const std::uint64_t sign = 1ull << (facts.bits - 1);
    if (facts.kind == Kind::signed_int) return bits ^ sign;
    if (facts.kind != Kind::floating) return bits;
    std::uint64_t infinity = 0x7FF0000000000000;
    if (facts.bits == 32) infinity = 0x7F800000;
    if (facts.bits < 32) infinity = facts.format.has_infinity ? facts.format.overflow() : facts.format.largest();
    const std::uint64_t all = sign | (sign - 1);
    if (bits == sign) bits = 0;
    if ((bits & ~sign) > infinity) return all;
    return bits & sign ? ~bits & all : bits | sign;
}

std::uint32_t digit_of(std::uint64_t code, std::int32_t shift) {
    return static_cast<std::uint32_t>(code >> shift) & (kSortDigits - 1);
}

// Calls body(begin, end, counters of the warp in shared memory) for each chunk.
template <typename Body>
void for_each_chunk(const SortPlan& plan, const Body& body) {
    [[clang::loader_uninitialized]] static
        __attribute__((address_space(3))) std::int64_t counters[kSortWarps * kSortDigits];
    auto* const own = counters + block_thread() / kWarp * kSortDigits;
    for (std::int64_t chunk = warp_index(); chunk < plan.chunks; chunk += warps()) {
        const std::int64_t begin = chunk * kWarpItems;
        body(chunk, begin, least(plan.count, begin + kWarpItems), own);
        __nvvm_bar_warp_sync(kAllLanes);
    }
}

// The lanes that have an item, in the group of 32 that begins at `first`.
std::uint32_t lanes_with_items(std::int64_t first, std::int64_t end) {
    return end - first >= kWarp ? kAllLanes : (1u << (end - first)) - 1;
}

// Calls step(i, digit, lanes with the same digit, rank of this lane among them, lanes with an item) for each item, 32
// at a time.
template <typename Step>
void for_each_item(const SortPlan& plan, std::int64_t begin, std::int64_t end, const Step& step) {
    for (std::int64_t first = begin; first < end; first += kWarp) {
        const std::uint32_t active = lanes_with_items(first, end);
        if (!(active >> lane() & 1)) continue;
        const std::int64_t i = first + lane();
        const std::uint32_t digit = digit_of(plan.codes[i], plan.shift);
        const auto same = static_cast<std::uint32_t>(__nvvm_match_any_sync_i32(active, static_cast<int>(digit)));
        step(i, digit, same, __builtin_popcount(same & ((1u << lane()) - 1)), active);
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_sort_begin(SortPlan plan) {
    const ScalarFacts facts = facts_of(static_cast<Scalar>(plan.scalar));
    for (std::int64_t i = thread_index(); i < plan.count; i += threads()) {
        const std::int64_t at = plan.where ? plan.where[i] : i;
        plan.codes[i] = code_of(load_bits(plan.keys + at * plan.key_bytes, plan.key_bytes), facts);
        plan.order[i] = i;
    }
}

// Replaces the codes by the segments of the elements sorted so far.
[[clang::device_kernel]] void weft_sort_take_segments(SortPlan plan) {
    for (std::int64_t i = thread_index(); i < plan.count; i += threads())
        plan.codes[i] = static_cast<std::uint64_t>(plan.segments[plan.order[i]]);
}

[[clang::device_kernel]] void weft_segments_begin(SegmentsPlan plan) {
    for (std::int64_t i = thread_index(); i < plan.count; i += threads()) plan.of[i] = i;
    if (thread_index() == 0) plan.wrong[0] = plan.wrong[1] = plan.wrong[2] = 0;
}

// A warp takes a segment.
[[clang::device_kernel]] void weft_segments_mark(SegmentsPlan plan) {
    for (std::int64_t segment = warp_index(); segment < plan.segments; segment += warps()) {
        const std::int64_t begin = plan.begins[segment], end = plan.ends[segment];
        if (begin >= 0 && begin <= end && end <= plan.count) {
            for (std::int64_t i = begin + lane(); i < end; i += kWarp) plan.of[i] = begin;
        } else if (lane() == 0 && is_first(plan.wrong, segment + 1)) {
            plan.wrong[1] = begin;
            plan.wrong[2] = end;
        }
    }
}

[[clang::device_kernel]] void weft_sort_count(SortPlan plan) {
    for_each_chunk(plan, [&](std::int64_t chunk, std::int64_t begin, std::int64_t end, auto* counters) {
        for (std::int64_t digit = lane(); digit < kSortDigits; digit += kWarp) counters[digit] = 0;
        __nvvm_bar_warp_sync(kAllLanes);
        for_each_item(plan, begin, end,
                      [&](std::int64_t, std::uint32_t digit, std::uint32_t same, int rank, auto active) {
                          if (rank == 0) counters[digit] += __builtin_popcount(same);
                          __nvvm_bar_warp_sync(active);
                      });
        __nvvm_bar_warp_sync(kAllLanes);
        for (std::int64_t digit = lane(); digit < kSortDigits; digit += kWarp)
            plan.counts[digit * plan.chunks + chunk] = counters[digit];
    });
}

[[clang::device_kernel]] void weft_sort_move(SortPlan plan) {
    for_each_chunk(plan, [&](std::int64_t chunk, std::int64_t begin, std::int64_t end, auto* next) {
        for (std::int64_t digit = lane(); digit < kSortDigits; digit += kWarp)
            next[digit] = plan.counts[digit * plan.chunks + chunk];
        __nvvm_bar_warp_sync(kAllLanes);
        for_each_item(plan, begin, end,
                      [&](std::int64_t i, std::uint32_t digit, std::uint32_t same, int rank, auto active) {
                          const std::int64_t to = next[digit] + rank;
                          plan.other_codes[to] = plan.codes[i];
                          plan.other_order[to] = plan.order[i];
                          __nvvm_bar_warp_sync(active);
                          if (rank == 0) next[digit] += __builtin_popcount(same);
                          __nvvm_bar_warp_sync(active);
                      });
    });
}

// Launched as one block: each thread sums a part, then one thread sums the parts.
[[clang::device_kernel]] void weft_places(PlacesPlan plan) {
    constexpr int kMostThreads = 256;
    [[clang::loader_uninitialized]] static __attribute__((address_space(3))) std::int64_t parts[kMostThreads];
    const std::int64_t begin = plan.count * block_thread() / block_threads();
    const std::int64_t end = plan.count * (block_thread() + 1) / block_threads();
    std::int64_t sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += plan.counts[i];
    parts[block_thread()] = sum;
    __syncthreads();
    if (block_thread() == 0) {
        std::int64_t place = 0;
        for (std::int64_t part = 0; part < block_threads(); ++part) {
            const std::int64_t size = parts[part];
            parts[part] = place;
            place += size;
        }
        plan.counts[plan.count] = place;
    }
    __syncthreads();
    std::int64_t place = parts[block_thread()];
    for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t size = plan.counts[i];
        plan.counts[i] = place;
        place += size;
    }
}

[[clang::device_kernel]] void weft_sort_gather(GatherPlan plan) {
    const auto unaligned = static_cast<std::uint64_t>(plan.bytes) | reinterpret_cast<std::uint64_t>(plan.from) |
                           reinterpret_cast<std::uint64_t>(plan.to);
    const auto element = [&](std::int64_t i) { return (plan.where ? plan.where[i] : i) * plan.bytes; };
    for (std::int64_t i = thread_index(); i < plan.count; i += threads()) {
        const char* const from = plan.from + element(plan.order[i]);
        char* const to = plan.to + element(i);
        if (unaligned % 4 == 0) {
            for (std::int64_t at = 0; at < plan.bytes; at += 4)
                *reinterpret_cast<std::uint32_t*>(to + at) = *reinterpret_cast<const std::uint32_t*>(from + at);
        } else {
            for (std::int64_t at = 0; at < plan.bytes; ++at) to[at] = from[at];
        }
    }
}

}  // extern "C"

}  // namespace weft::devlib
