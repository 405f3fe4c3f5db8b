// Running sums, in two passes over blocks: the sum of each block, then the scan of each block from the total of those
// before it. A single block needs one pass only. Within a block, groups of numbers are summed separately before the
// carry is added, so that the chain of dependent additions has one per group.
#include <algorithm>

#include "runtime/array_copies.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/primitives.h"
#include "runtime/cpu/primitives/numbers.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kBlockNumbers = 1 << 14;  // per block
constexpr int kGroup = 8;

// Numbers of one component, `stride` numbers apart.
template <typename T>
struct Column {
    const T* from;
    T* to;
    std::int64_t stride;
};

template <typename T>
void store(T* to, SumOf<T> sum) {
    if constexpr (kIsSmallFloat<T>) {
        write_scalar(T::scalar, Number::real(sum), to);
    } else {
        *to = static_cast<T>(sum);
    }
}

template <typename T>
SumOf<T> block_sum(const Column<T>& column, std::int64_t begin, std::int64_t end) {
    SumOf<T> lanes[kGroup] = {};
    std::int64_t i = begin;
    for (; i + kGroup <= end; i += kGroup) {
        for (int lane = 0; lane < kGroup; ++lane) lanes[lane] += widened(column.from[(i + lane) * column.stride]);
    }
    for (int lane = 0; i < end; ++i, ++lane) lanes[lane] += widened(column.from[i * column.stride]);
    for (int half = kGroup / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    return lanes[0];
}

template <typename T, bool kInclusive>
void scan_block(const Column<T>& column, std::int64_t begin, std::int64_t end, SumOf<T> carry) {
    std::int64_t i = begin;
    for (; i + kGroup <= end; i += kGroup) {
        SumOf<T> sums[kGroup];
        SumOf<T> local{};
        for (int lane = 0; lane < kGroup; ++lane) {
            SumOf<T> number = widened(column.from[(i + lane) * column.stride]);
            sums[lane] = kInclusive ? local + number : local;
            local += number;
        }
        for (int lane = 0; lane < kGroup; ++lane) store(column.to + (i + lane) * column.stride, carry + sums[lane]);
        carry += local;
    }
    for (; i < end; ++i) {
        SumOf<T> number = widened(column.from[i * column.stride]);
        store(column.to + i * column.stride, kInclusive ? carry + number : carry);
        carry += number;
    }
}

template <typename T>
void scan_column(const Column<T>& column, std::int64_t count, bool inclusive) {
    std::int64_t blocks = (count + kBlockNumbers - 1) / kBlockNumbers;
    std::vector<SumOf<T>> carries(static_cast<std::size_t>(blocks));
    auto end_of = [&](std::int64_t block) { return std::min(count, (block + 1) * kBlockNumbers); };
    for_each_block(blocks - 1, kBlockNumbers, [&](std::int64_t block) {
        carries[static_cast<std::size_t>(block + 1)] = block_sum(column, block * kBlockNumbers, end_of(block));
    });
    for (std::size_t block = 1; block < carries.size(); ++block) carries[block] += carries[block - 1];
    for_each_block(blocks, kBlockNumbers, [&](std::int64_t block) {
        SumOf<T> carry = carries[static_cast<std::size_t>(block)];
        if (inclusive) {
            scan_block<T, true>(column, block * kBlockNumbers, end_of(block), carry);
        } else {
            scan_block<T, false>(column, block * kBlockNumbers, end_of(block), carry);
        }
    });
}

}  // namespace

void CpuPrimitives::scan(const Array& from, const Array& to, bool inclusive) {
    const CpuDevice::Access access(*from.device);
    Array source = contiguous(from);
    // In place only if both are the same elements; other overlaps need a temporary.
    bool direct = to.is_contiguous() && (to.view.data == source.view.data || !overlap(to, source));
    Array result = direct ? to : empty(to.dtype, to.shape(), *to.device);
    std::int64_t components = from.dtype.components();
    visit_scalar(from.dtype.scalar(), [&](auto number) {
        using T = decltype(number);
        for (std::int64_t component = 0; component < components; ++component) {
            scan_column<T>({static_cast<const T*>(source.view.data) + component,
                            static_cast<T*>(result.view.data) + component, components},
                           from.size(), inclusive);
        }
    });
    if (!direct) copy(to, result);
}

}  // namespace weft::runtime
