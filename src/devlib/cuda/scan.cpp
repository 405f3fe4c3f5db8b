// Running sums, in the CPU's order of additions (runtime/cpu/primitives/scan.cpp), so that results are bitwise equal:
// the sums of blocks, then the scan of each block from the total of those before it, in groups of numbers.
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

template <typename Sum>
Sum number_at(const ScanPlan& plan, std::int64_t component, std::int64_t index) {
    return load_number<Sum>(static_cast<Scalar>(plan.scalar),
                            plan.from + (index * plan.components + component) * plan.bytes);
}
template <typename Sum>
void write(const ScanPlan& plan, std::int64_t component, std::int64_t index, Sum sum) {
    const auto scalar = static_cast<Scalar>(plan.scalar);
    store_number(sum, scalar, scalar, plan.to + (index * plan.components + component) * plan.bytes);
}

// The sum of each block of a component but the last, stored at the next block. kScanGroup threads add a block.
template <typename Sum>
void sum_blocks(const ScanPlan& plan) {
    constexpr std::int64_t kGroups = kWarp / kScanGroup;  // per warp
    const std::int64_t own = lane() % kScanGroup, count = plan.components * (plan.blocks - 1);
    for (std::int64_t first = warp_index() * kGroups; first < count; first += warps() * kGroups) {
        const std::int64_t at = first + lane() / kScanGroup;
        const std::int64_t component = at / (plan.blocks - 1), block = at - component * (plan.blocks - 1);
        Sum sum{};
        if (at < count) {
            const std::int64_t begin = block * kScanBlock;
            for (std::int64_t i = begin + own; i < begin + kScanBlock; i += kScanGroup)
                sum += number_at<Sum>(plan, component, i);
        }
        for (int half = kScanGroup / 2; half > 0; half /= 2) {
            const Sum other = from_lane_below(sum, half, kScanGroup);
            if (own < half) sum += other;
        }
        if (own == 0 && at < count) static_cast<Sum*>(plan.carries)[component * plan.blocks + block + 1] = sum;
    }
}

template <typename Sum>
void add_carries(const ScanPlan& plan) {
    for (std::int64_t component = thread_index(); component < plan.components; component += threads()) {
        Sum* const carries = static_cast<Sum*>(plan.carries) + component * plan.blocks;
        Sum carry{};
        for (std::int64_t block = 0; block < plan.blocks; ++block) {
            if (block > 0) carry += carries[block];
            carries[block] = carry;
        }
    }
}

// A block of threads writes a block of sums. One thread carries the totals of groups from one to the next.
template <typename Sum>
void scan_blocks(const ScanPlan& plan) {
    [[clang::loader_uninitialized]] static __attribute__((address_space(3))) Sum sums[kScanBlock / kScanGroup];
    for (std::int64_t at = block_index(); at < plan.components * plan.blocks; at += blocks()) {
        const std::int64_t component = at / plan.blocks, block = at - component * plan.blocks;
        const std::int64_t begin = block * kScanBlock, end = least(plan.count, begin + kScanBlock);
        const std::int64_t groups = (end - begin) / kScanGroup;
        for (std::int64_t group = block_thread(); group < groups; group += block_threads()) {
            Sum local{};
            for (int i = 0; i < kScanGroup; ++i)
                local += number_at<Sum>(plan, component, begin + group * kScanGroup + i);
            sums[group] = local;
        }
        __syncthreads();
        if (block_thread() == 0) {
            Sum carry = static_cast<const Sum*>(plan.carries)[at];
            for (std::int64_t group = 0; group < groups; ++group) {
                const Sum local = sums[group];
                sums[group] = carry;
                carry += local;
            }
            for (std::int64_t i = begin + groups * kScanGroup; i < end; ++i) {
                const Sum number = number_at<Sum>(plan, component, i);
                write(plan, component, i, plan.inclusive ? carry + number : carry);
                carry += number;
            }
        }
        __syncthreads();
        for (std::int64_t group = block_thread(); group < groups; group += block_threads()) {
            Sum local{};
            for (int i = 0; i < kScanGroup; ++i) {
                const std::int64_t index = begin + group * kScanGroup + i;
                const Sum number = number_at<Sum>(plan, component, index);
                write(plan, component, index, sums[group] + (plan.inclusive ? local + number : local));
                local += number;
            }
        }
        __syncthreads();
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_scan_sums_real(ScanPlan plan) { sum_blocks<double>(plan); }
[[clang::device_kernel]] void weft_scan_sums_whole(ScanPlan plan) { sum_blocks<std::uint64_t>(plan); }
[[clang::device_kernel]] void weft_scan_carries_real(ScanPlan plan) { add_carries<double>(plan); }
[[clang::device_kernel]] void weft_scan_carries_whole(ScanPlan plan) { add_carries<std::uint64_t>(plan); }
[[clang::device_kernel]] void weft_scan_blocks_real(ScanPlan plan) { scan_blocks<double>(plan); }
[[clang::device_kernel]] void weft_scan_blocks_whole(ScanPlan plan) { scan_blocks<std::uint64_t>(plan); }

}  // extern "C"

}  // namespace weft::devlib
