// Sums and inner products over an axis with others after it, in the CPU's order of additions
// (runtime/cpu/primitives/reduce.cpp): blocks of kSumRows rows, then pairs of blocks.
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/sums.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

// A thread adds one column of a block, with neighbouring threads on neighbouring columns.
template <typename Format>
void sum_columns(const SumPlan& plan) {
    using Sum = typename Format::Sum;
    constexpr int kSteps = 2 * Format::kSteps;
    const std::int64_t sums = plan.outer * plan.blocks * plan.width;
    for (std::int64_t at = thread_index(); at < sums; at += threads()) {
        const std::int64_t block = at / plan.width, column = at - block * plan.width;
        const std::int64_t row = block / plan.blocks, begin = (block - row * plan.blocks) * kSumRows;
        const std::int64_t count = least(plan.count - begin, kSumRows);
        std::int64_t from = (row * plan.count + begin) * plan.width + column;
        Sum sum{};
        std::int64_t i = 0;
        for (; i + kSteps <= count; i += kSteps, from += kSteps * plan.width) {
            Sum some[kSteps];
#pragma unroll
            for (int step = 0; step < kSteps; ++step) some[step] = Format::load(plan, from + step * plan.width);
#pragma unroll
            for (int step = 0; step < kSteps; ++step) sum += some[step];
        }
        for (; i < count; ++i, from += plan.width) sum += Format::load(plan, from);
        if (plan.partial)
            static_cast<Sum*>(plan.partial)[at] = sum;
        else
            write_total(plan, at, sum);
    }
}

// A block of threads adds the blocks of one result, pair by pair, and the components that make it.
template <typename Sum>
void sum_blocks(const SumPlan& plan) {
    [[clang::loader_uninitialized]] static __attribute__((address_space(3))) Sum shared[kSumThreads];
    const std::int64_t results = plan.width / plan.components;  // of a row
    for (std::int64_t at = block_index(); at < plan.outer * results; at += blocks()) {
        const std::int64_t row = at / results;
        Sum total{};
        for (std::int64_t i = 0; i < plan.components; ++i) {
            const std::int64_t column = (at - row * results) * plan.components + i;
            const Sum* const sums = static_cast<const Sum*>(plan.partial) + row * plan.blocks * plan.width + column;
            PairStack<Sum> stack;
            for (std::int64_t from = 0; from < plan.blocks; from += kSumThreads) {
                const std::int64_t count = least(kSumThreads, plan.blocks - from);
                if (block_thread() < count) shared[block_thread()] = sums[(from + block_thread()) * plan.width];
                __syncthreads();
                stack.push(add_pairs(shared, count));
                __syncthreads();
            }
            total = i == 0 ? stack.total() : total + stack.total();
        }
        if (block_thread() == 0) write_total(plan, at, total);
    }
}

}  // namespace

extern "C" {

#define WEFT_SUM_COLUMNS(name, ...) \
    [[clang::device_kernel]] void weft_sum_columns_##name(SumPlan plan) { sum_columns<__VA_ARGS__>(plan); }
WEFT_SUMMANDS(WEFT_SUM_COLUMNS)
#undef WEFT_SUM_COLUMNS
[[clang::device_kernel]] void weft_sum_blocks_real(SumPlan plan) { sum_blocks<double>(plan); }
[[clang::device_kernel]] void weft_sum_blocks_whole(SumPlan plan) { sum_blocks<std::uint64_t>(plan); }

}  // extern "C"

}  // namespace weft::devlib
