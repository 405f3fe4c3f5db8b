// Sums and inner products over contiguous rows, in the CPU's order of additions (runtime/cpu/primitives/reduce.cpp), so
// that results are bitwise equal: blocks of kSumRows numbers with kSumLanes interleaved sums each, then pairs of
// blocks. One launch: the block of threads with the last ticket of a row adds the sums of the row's others.
#include "devlib/cuda/look_back.h"
#include "devlib/cuda/numbers.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/sums.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

template <typename Format>
class Lines {
public:
    using Sum = typename Format::Sum;
    static constexpr int kOwn = Format::kTogether;  // interleaved sums of a thread
    static constexpr int kThreads = kSumLanes / kOwn;
    static constexpr int kBlocks = static_cast<int>(kSumThreads) / kThreads;  // that a block of threads adds

    explicit Lines(const SumPlan& plan) : plan_(plan) {}

    void run() const {
        const std::int64_t at = plan_.parts == 1 ? block_index() : std::int64_t{ticket()};
        // A row of several blocks of numbers, or several rows of one block.
        const bool is_long = plan_.blocks > 1;
        const std::int64_t first = is_long ? at % plan_.parts * kBlocks : 0;
        const std::int64_t row = is_long ? at / plan_.parts : at * kBlocks + thread() / kThreads;
        const std::int64_t begin = is_long ? (first + thread() / kThreads) * kSumRows : 0;
        const std::int64_t count = row < plan_.outer ? least(kSumRows, plan_.count - begin) : 0;
        const Sum sum = add_block(row * plan_.count + begin, count);
        if (is_long)
            add_parts(row, first / kBlocks, sum);
        else if (row < plan_.outer && thread() % kThreads == 0)
            write_total(plan_, row, sum);
    }

private:
    static int thread() { return __nvvm_read_ptx_sreg_tid_x(); }

    std::uint32_t ticket() const {
        if (thread() == 0) {
            const Ticket taken = take_ticket(plan_.state);
            shared_number = taken.number;
            shared_launch = taken.launch;
        }
        __syncthreads();
        return shared_number;
    }

    // Adds the sums of blocks of numbers, then of parts.
    void add_parts(std::int64_t row, std::int64_t part, Sum sum) const {
        if (thread() % kThreads == 0) shared_sums[thread() / kThreads] = sum;
        __syncthreads();
        const Sum total = add_pairs(shared_sums, least(kBlocks, plan_.blocks - part * kBlocks));
        if (plan_.parts == 1) {
            if (thread() == 0) write_total(plan_, row, total);
            return;
        }
        auto* const entries = reinterpret_cast<Entry<Sum>*>(plan_.state + kScanHeaderWords) + row * plan_.parts;
        if (thread() == 0) entries[part].publish(total, shared_launch);
        if (part != plan_.parts - 1) return;
        PairStack<Sum> stack;
        for (std::int64_t from = 0; from < plan_.parts; from += kSumThreads) {
            __syncthreads();
            shared_sums[thread()] =
                Reader<Sum>(entries + from + thread(), from + thread() < plan_.parts, shared_launch).wait();
            __syncthreads();
            stack.push(add_pairs(shared_sums, least(kSumThreads, plan_.parts - from)));
        }
        if (thread() == 0) write_total(plan_, row, stack.total());
    }

    // The sum of `count` summands from `begin`, in the first of the kThreads threads that share them.
    Sum add_block(std::int64_t begin, std::int64_t count) const {
        const int own = thread() % kThreads * kOwn;
        Sum sums[kOwn] = {};
        std::int64_t i = 0;
        if (plan_.in_pieces) {
            constexpr int kSteps = Format::kSteps;
            for (; i + kSteps * kSumLanes <= count; i += kSteps * kSumLanes) {
                typename Format::Some some[kSteps];
#pragma unroll
                for (int step = 0; step < kSteps; ++step)
                    some[step] = Format::load_together(plan_, begin + i + step * kSumLanes + own);
#pragma unroll
                for (int step = 0; step < kSteps; ++step)
                    for (int j = 0; j < kOwn; ++j) sums[j] += Format::summand(plan_, some[step], j);
            }
            for (; i + kSumLanes <= count; i += kSumLanes) {
                const auto some = Format::load_together(plan_, begin + i + own);
                for (int j = 0; j < kOwn; ++j) sums[j] += Format::summand(plan_, some, j);
            }
        }
        for (; i < count; i += kSumLanes)
            for (int j = 0; j < kOwn; ++j)
                if (i + own + j < count) sums[j] += Format::load(plan_, begin + i + own + j);
        for (int half = kThreads / 2; half > 0; half /= 2)
            for (int j = 0; j < kOwn; ++j) {
                const Sum other = from_lane_below(sums[j], half, kThreads);
                if (thread() % kThreads < half) sums[j] += other;
            }
        for (int half = kOwn / 2; half > 0; half /= 2)
            for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
        return sums[0];
    }

    [[clang::loader_uninitialized]] static inline __attribute__((address_space(3))) Sum shared_sums[kSumThreads];
    [[clang::loader_uninitialized]] static inline __attribute__((address_space(3))) std::uint32_t shared_number,
        shared_launch;

    const SumPlan& plan_;
};

}  // namespace

extern "C" {

#define WEFT_SUM_LINES(name, ...) \
    [[clang::device_kernel]] void weft_sum_lines_##name(SumPlan plan) { Lines<__VA_ARGS__>(plan).run(); }
WEFT_SUMMANDS(WEFT_SUM_LINES)
#undef WEFT_SUM_LINES

}  // extern "C"

}  // namespace weft::devlib
