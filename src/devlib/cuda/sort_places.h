// The parts that the kernels of sorts share: segments and their tiles, places of equal digits in warps and blocks, and
// words that blocks tell each other.
#pragma once

#include "devlib/cuda/radix_sort.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

#define WEFT_SHARED [[clang::loader_uninitialized]] static __attribute__((address_space(3)))

template <typename T>
using Shared = __attribute__((address_space(3))) T*;

inline constexpr int kLanes = int(kWarp), kSortWarps = kSortThreads / kLanes;
inline constexpr UInt32 kIsPlace = UInt32(1) << 31;

inline UInt32 least32(UInt32 a, UInt32 b) { return a < b ? a : b; }

inline UInt32 add_to(UInt32* word, UInt32 number) {
    return __scoped_atomic_fetch_add(word, number, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
inline UInt64 add_to(UInt64* word, UInt64 number) {
    return __scoped_atomic_fetch_add(word, number, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
inline void count_one(Shared<UInt32> word) {
    __scoped_atomic_fetch_add(word, 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}
inline void tell(UInt32* word, UInt32 number) {
    __scoped_atomic_store_n(word, number, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

inline UInt32 lanes_up_to_own() { return UInt32(__nvvm_read_ptx_sreg_lanemask_le()); }
inline UInt32 from_lane(UInt32 number, int lane) {
    return UInt32(__nvvm_shfl_sync_idx_i32(kAllLanes, Int32(number), lane, kLanes - 1));
}

// The lanes with the same digit, by a vote for each bit.
inline UInt32 lanes_with(UInt32 digit) {
    UInt32 same = kAllLanes;
#pragma unroll
    for (int bit = 0; bit < kDigitBits; ++bit) {
        UInt32 own = digit & 1u << bit;
        asm("" : "+r"(own));  // else LLVM tests the bit twice, in two ways
        const UInt32 votes = __nvvm_vote_ballot_sync(kAllLanes, own != 0);
        same &= votes ^ (own != 0 ? 0 : kAllLanes);
    }
    return same;
}

// The sum of the numbers of the threads before this one. All threads of the block must call it.
template <int kThreads = kSortThreads>
UInt32 sum_before(UInt32 number) {
    constexpr int kWarps = kThreads / kLanes;
    WEFT_SHARED UInt32 sums[kWarps];
    const int warp = int(block_thread()) / kLanes, own = int(block_thread()) % kLanes;
    UInt32 sum = number;
#pragma unroll
    for (int distance = 1; distance < kLanes; distance *= 2) {
        const auto other = UInt32(__nvvm_shfl_sync_up_i32(kAllLanes, Int32(sum), distance, /*clamp=*/0));
        if (own >= distance) sum += other;
    }
    if (own == kLanes - 1) sums[warp] = sum;
    __syncthreads();
    UInt32 before = sum - number;
#pragma unroll
    for (int other = 0; other < kWarps; ++other)
        if (other < warp) before += sums[other];
    __syncthreads();
    return before;
}

// ---- segments and tiles ----

inline UInt32 tiles_of(const RadixSortPlan& plan) {
    return plan.segments ? least32(plan.counts[1], plan.most_tiles) : plan.most_tiles;
}
inline UInt32 owner_of(const RadixSortPlan& plan, UInt32 tile) { return plan.segments ? plan.owners[tile] : 0; }
inline SortSegment segment_of(const RadixSortPlan& plan, UInt32 owner) {
    return plan.segments ? plan.segments[owner] : plan.only;
}

}  // namespace weft::devlib
