// The parts of sorts that do not depend on the type of keys; radix_sort.h describes the method.
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/sort_places.h"

namespace weft::devlib {

namespace {

// Turns the counts of a segment's digits into places, and chooses the steps of its passes. A block has a segment.
void find_steps(const RadixSortPlan& plan) {
    WEFT_SHARED UInt32 is_useless;  // a bit for each pass
    const int thread = int(block_thread());
    const UInt32 segments = plan.segments ? least32(plan.counts[0], plan.most_segments) : 1;
    for (auto owner = UInt32(block_index()); owner < segments; owner += UInt32(blocks())) {
        const UInt32 count = segment_of(plan, owner).count;
        if (thread == 0) is_useless = 0;
        __syncthreads();
        for (int pass = 0; pass < plan.passes; ++pass) {
            UInt32* const digits = plan.digits + (std::int64_t(owner) * plan.passes + pass) * kDigits;
            const UInt32 found = digits[thread];
            // At most one thread of a pass.
            if (found == count)
                __scoped_atomic_fetch_or(&is_useless, 1u << pass, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
            digits[thread] = sum_before(found);
        }
        if (thread == 0) {
            const UInt32 useless = __scoped_atomic_load_n(&is_useless, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
            UInt32 copying = 0;
            int moves = plan.passes - __builtin_popcount(useless);
            for (int pass = plan.passes - 1; pass >= 0; --pass) {
                const bool is_enough = (plan.passes - moves) % 2 == 0 && !(plan.makes_positions && moves == 0);
                if (is_enough || !(useless >> pass & 1)) continue;
                copying |= 1u << pass;
                ++moves;
            }
            moves = 0;
            for (int pass = 0; pass < plan.passes; ++pass) {
                Int32 step = 0;
                if (!(useless >> pass & 1))
                    step = kStepSorts;
                else if (copying >> pass & 1)
                    step = kStepCopies;
                if (step != 0) {
                    if (moves == 0) step |= kStepIsFirst;
                    if (moves % 2 == 1) step |= kStepReadsSecond;
                    ++moves;
                }
                plan.steps[std::int64_t(owner) * plan.passes + pass] = step;
            }
        }
        __syncthreads();
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_sort_steps(RadixSortPlan plan) { find_steps(plan); }

[[clang::device_kernel]] void weft_sort_gather(GatherPlan plan) {
    const auto unaligned = static_cast<std::uint64_t>(plan.bytes) | reinterpret_cast<std::uint64_t>(plan.from) |
                           reinterpret_cast<std::uint64_t>(plan.to);
    const UInt32 tiles = tiles_of(plan.sort);
    for (auto tile = UInt32(block_index()); tile < tiles; tile += UInt32(blocks())) {
        const SortSegment segment = segment_of(plan.sort, owner_of(plan.sort, tile));
        const UInt32 begin = segment.begin + (tile - segment.first_tile) * kSortTile;
        const UInt32 end = least32(segment.begin + segment.count, begin + kSortTile);
        for (UInt32 i = begin + UInt32(block_thread()); i < end; i += kSortThreads) {
            const char* const from = plan.from + std::int64_t(plan.positions[i]) * plan.bytes;
            char* const to = plan.to + std::int64_t(i) * plan.bytes;
            if (unaligned % 4 == 0) {
                for (std::int64_t at = 0; at < plan.bytes; at += 4)
                    *reinterpret_cast<UInt32*>(to + at) = *reinterpret_cast<const UInt32*>(from + at);
            } else {
                for (std::int64_t at = 0; at < plan.bytes; ++at) to[at] = from[at];
            }
        }
    }
}

}  // extern "C"

}  // namespace weft::devlib
