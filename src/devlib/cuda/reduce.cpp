// Sums and inner products, in the CPU's order of additions (runtime/cpu/primitives/reduce.cpp), so that results are
// bitwise equal: blocks of rows, then pairs of blocks.
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

// The summand at `index`.
template <typename Sum>
Sum term(const SumPlan& plan, std::int64_t index) {
    const auto scalar = static_cast<Scalar>(plan.scalar);
    const Sum a = load_number<Sum>(scalar, plan.a + index * plan.bytes);
    return plan.b ? a * load_number<Sum>(scalar, plan.b + index * plan.bytes) : a;
}

// Rows of single numbers: kSumLanes threads add a block, with neighbouring threads on neighbouring numbers.
template <typename Sum>
void sum_lines(const SumPlan& plan) {
    constexpr std::int64_t kGroups = kWarp / kSumLanes;  // per warp
    const std::int64_t own = lane() % kSumLanes, blocks = plan.outer * plan.blocks;
    // All lanes of a warp do the same number of rounds, since they exchange numbers.
    for (std::int64_t first = warp_index() * kGroups; first < blocks; first += warps() * kGroups) {
        const std::int64_t block = first + lane() / kSumLanes;
        Sum sum{};
        if (block < blocks) {
            const std::int64_t row = block / plan.blocks, begin = (block - row * plan.blocks) * kSumRows;
            const std::int64_t end = least(plan.count, begin + kSumRows);
            for (std::int64_t i = begin + own; i < end; i += kSumLanes) sum += term<Sum>(plan, row * plan.count + i);
        }
        for (int half = kSumLanes / 2; half > 0; half /= 2) {
            const Sum other = from_lane_below(sum, half, kSumLanes);
            if (own < half) sum += other;
        }
        if (own == 0 && block < blocks) static_cast<Sum*>(plan.partial)[block] = sum;
    }
}

// A thread adds one column of a block.
template <typename Sum>
void sum_columns(const SumPlan& plan) {
    const std::int64_t sums = plan.outer * plan.blocks * plan.width;
    for (std::int64_t at = thread_index(); at < sums; at += threads()) {
        const std::int64_t block = at / plan.width, column = at - block * plan.width;
        const std::int64_t row = block / plan.blocks, begin = (block - row * plan.blocks) * kSumRows;
        const std::int64_t end = least(plan.count, begin + kSumRows);
        Sum sum{};
        for (std::int64_t i = begin; i < end; ++i) sum += term<Sum>(plan, (row * plan.count + i) * plan.width + column);
        static_cast<Sum*>(plan.partial)[at] = sum;
    }
}

// A block of threads adds the blocks of one row and column, pair by pair, into the first.
template <typename Sum>
void sum_pairs(const SumPlan& plan) {
    for (std::int64_t at = block_index(); at < plan.outer * plan.width; at += blocks()) {
        const std::int64_t row = at / plan.width, column = at - row * plan.width;
        Sum* const sums = static_cast<Sum*>(plan.partial) + row * plan.blocks * plan.width + column;
        for (std::int64_t step = 1; step < plan.blocks; step *= 2) {
            for (std::int64_t i = block_thread() * 2 * step; i + step < plan.blocks; i += block_threads() * 2 * step)
                sums[i * plan.width] += sums[(i + step) * plan.width];
            __syncthreads();
        }
    }
}

template <typename Sum>
void write_totals(const TotalsPlan& plan) {
    const auto of = static_cast<Scalar>(plan.of), to = static_cast<Scalar>(plan.to_scalar);
    const auto sum_at = [&](std::int64_t at) {
        const std::int64_t row = at / plan.width, column = at - row * plan.width;
        return static_cast<const Sum*>(plan.partial)[row * plan.blocks * plan.width + column];
    };
    for (std::int64_t at = thread_index(); at < plan.count; at += threads()) {
        Sum total = sum_at(at * plan.components);
        for (std::int64_t i = 1; i < plan.components; ++i) total += sum_at(at * plan.components + i);
        store_number(total, of, to, plan.to + at * plan.bytes);
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_sum_lines_real(SumPlan plan) { sum_lines<double>(plan); }
[[clang::device_kernel]] void weft_sum_lines_whole(SumPlan plan) { sum_lines<std::uint64_t>(plan); }
[[clang::device_kernel]] void weft_sum_columns_real(SumPlan plan) { sum_columns<double>(plan); }
[[clang::device_kernel]] void weft_sum_columns_whole(SumPlan plan) { sum_columns<std::uint64_t>(plan); }
[[clang::device_kernel]] void weft_sum_pairs_real(SumPlan plan) { sum_pairs<double>(plan); }
[[clang::device_kernel]] void weft_sum_pairs_whole(SumPlan plan) { sum_pairs<std::uint64_t>(plan); }
[[clang::device_kernel]] void weft_totals_real(TotalsPlan plan) { write_totals<double>(plan); }
[[clang::device_kernel]] void weft_totals_whole(TotalsPlan plan) { write_totals<std::uint64_t>(plan); }

}  // extern "C"

}  // namespace weft::devlib
