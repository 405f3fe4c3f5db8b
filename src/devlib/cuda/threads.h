// Indices of threads, and operations across the threads of a warp and of a block.
#pragma once

#include <cstdint>

#include "devlib/cuda/primitives.h"

namespace weft::devlib {

inline constexpr std::uint32_t kAllLanes = 0xFFFFFFFF;

inline std::int64_t block_threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
inline std::int64_t block_thread() { return __nvvm_read_ptx_sreg_tid_x(); }
inline std::int64_t block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
inline std::int64_t blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
inline std::int64_t thread_index() { return block_threads() * block_index() + block_thread(); }
inline std::int64_t threads() { return block_threads() * blocks(); }
inline int lane_in_warp() { return __nvvm_read_ptx_sreg_tid_x() & 31; }
inline std::int64_t lane() { return block_thread() % kWarp; }
// Of the launch. Precondition: blocks consist of whole warps.
inline std::int64_t warp_index() { return thread_index() / kWarp; }
inline std::int64_t warps() { return threads() / kWarp; }

// Whether this thread is the first one that claims the word, which was 0.
inline bool is_first(std::int64_t* word, std::int64_t number) {
    std::int64_t unclaimed = 0;
    return __scoped_atomic_compare_exchange_n(word, &unclaimed, number, /*weak=*/false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

inline std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// The number of the lane `distance` above this one (shfl.down), within groups of `width` lanes. All lanes of the warp
// must call it.
template <typename Number>
Number from_lane_below(Number number, int distance, int width) {
    static_assert(sizeof(Number) == 8);
    const auto bits = __builtin_bit_cast(std::uint64_t, number);
    const int clamp = ((static_cast<int>(kWarp) - width) << 8) | 0x1F;
    const auto half = [&](std::uint64_t part) {
        return static_cast<std::uint32_t>(
            __nvvm_shfl_sync_down_i32(kAllLanes, static_cast<int>(static_cast<std::uint32_t>(part)), distance, clamp));
    };
    const std::uint64_t low = half(bits), high = half(bits >> 32);
    return __builtin_bit_cast(Number, low | high << 32);
}

// Calls exchange(part) for each 32 bits of a value, and makes a value of the results.
template <typename Value, typename Exchange>
Value exchange_words(const Value& value, const Exchange& exchange) {
    struct Parts {
        int parts[sizeof(Value) / 4];
    };
    auto bits = __builtin_bit_cast(Parts, value);
    for (int& part : bits.parts) part = exchange(part);
    return __builtin_bit_cast(Value, bits);
}

// The value of the lane `distance` below this one (shfl.up), and that of a given lane (shfl.idx). All lanes of the warp
// must call them. Lanes without such a lane get their own value.
template <typename Value>
Value from_lane_above(const Value& value, int distance) {
    return exchange_words(value, [&](int part) { return __nvvm_shfl_sync_up_i32(kAllLanes, part, distance, 0); });
}
template <typename Value>
Value from_lane(const Value& value, int lane) {
    return exchange_words(value, [&](int part) { return __nvvm_shfl_sync_idx_i32(kAllLanes, part, lane & 31, 0x1F); });
}

}  // namespace weft::devlib
