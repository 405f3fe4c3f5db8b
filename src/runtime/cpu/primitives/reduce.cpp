// Sums and inner products.
//
// The array is viewed as (outer, n, width): the summed axis between the axes before it and those after it, components
// of elements included. Rows of n are cut into blocks. A block adds its rows into `width` accumulators. If width is 1,
// it uses a fixed number of interleaved accumulators, which the compiler keeps in vector registers. Blocks are then
// added pairwise. Neither depends on the number of threads or on the width of the machine's registers.
#include <algorithm>

#include "runtime/array_copies.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/primitives.h"
#include "runtime/cpu/primitives/numbers.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kBlockRows = 2048;  // rows per block
constexpr int kLanes = 16;                 // accumulators of a block whose rows are single numbers
constexpr std::int64_t kColumns = 64;      // accumulators of a block of wider rows

// ---- one block ----

// The sum of get(0) ... get(count - 1).
template <typename Sum, typename Get>
[[gnu::always_inline]] inline Sum add_line(std::int64_t count, const Get& get) {
    Sum lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += get(i + lane);
    }
    for (int lane = 0; i < count; ++i, ++lane) lanes[lane] += get(i);
    for (int half = kLanes / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    return lanes[0];
}

template <typename T, bool kProducts>
struct Source {
    const T* a;
    const T* b;  // null for plain sums
    [[gnu::always_inline]] SumOf<T> operator()(std::int64_t i) const {
        if constexpr (kProducts) {
            return widened(a[i]) * widened(b[i]);
        } else {
            return widened(a[i]);
        }
    }
};

template <typename T, bool kProducts>
SumOf<T> line_sum(Source<T, kProducts> get, std::int64_t count) {
    return add_line<SumOf<T>>(count, get);
}
#if WEFT_WIDE_REGISTERS
// No fused multiply-add: the same bits on every machine.
template <typename T, bool kProducts>
[[gnu::target("avx2")]] SumOf<T> line_sum_wide(Source<T, kProducts> get, std::int64_t count) {
    return add_line<SumOf<T>>(count, get);
}
#endif

template <typename T, bool kProducts>
SumOf<T> block_line(Source<T, kProducts> get, std::int64_t count) {
#if WEFT_WIDE_REGISTERS
    if (has_wide_registers) return line_sum_wide(get, count);
#endif
    return line_sum(get, count);
}

// Sums columns [0, columns) of `rows` rows with a stride of `width` numbers.
template <typename T, bool kProducts>
void block_columns(Source<T, kProducts> get, std::int64_t rows, std::int64_t width, std::int64_t columns,
                   SumOf<T>* to) {
    std::fill(to, to + columns, SumOf<T>{});
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) to[column] += get(row * width + column);
    }
}

// ---- the whole array ----

// Adds `count` partial results of `width` numbers each into the first.
template <typename Sum>
void add_pairwise(Sum* partial, std::int64_t count, std::int64_t width) {
    for (std::int64_t step = 1; step < count; step *= 2) {
        for (std::int64_t i = 0; i + step < count; i += 2 * step) {
            for (std::int64_t j = 0; j < width; ++j) partial[i * width + j] += partial[(i + step) * width + j];
        }
    }
}

struct Extents {
    std::int64_t outer, count, width;
};

template <typename T, bool kProducts>
std::vector<Total> reduce(const void* a, const void* b, Extents extents) {
    using Sum = SumOf<T>;
    auto [outer, count, width] = extents;
    std::int64_t blocks = std::max<std::int64_t>(1, (count + kBlockRows - 1) / kBlockRows);
    std::int64_t parts = width == 1 ? 1 : (width + kColumns - 1) / kColumns;
    std::vector<Sum> partial(static_cast<std::size_t>(outer * blocks * width));
    for_each_block(outer * blocks * parts, std::min(count, kBlockRows) * std::min(width, kColumns),
                   [&](std::int64_t task) {
                       std::int64_t part = task % parts, block = task / parts % blocks, row = task / parts / blocks;
                       std::int64_t first = block * kBlockRows, rows = std::min(count - first, kBlockRows);
                       std::int64_t column = part * kColumns;
                       std::int64_t offset = (row * count + first) * width + column;
                       Source<T, kProducts> get{static_cast<const T*>(a) + offset,
                                                kProducts ? static_cast<const T*>(b) + offset : nullptr};
                       Sum* to = partial.data() + (row * blocks + block) * width + column;
                       if (width == 1) {
                           *to = block_line(get, rows);
                       } else {
                           block_columns(get, rows, width, std::min(width - column, kColumns), to);
                       }
                   });
    std::vector<Total> result(static_cast<std::size_t>(outer * width));
    for (std::int64_t row = 0; row < outer; ++row) {
        Sum* sums = partial.data() + row * blocks * width;
        add_pairwise(sums, blocks, width);
        for (std::int64_t column = 0; column < width; ++column) {
            Total& total = result[static_cast<std::size_t>(row * width + column)];
            if constexpr (kIsReal<T>) {
                total.real = sums[column];
            } else {
                total.whole = static_cast<std::int64_t>(sums[column]);
            }
        }
    }
    return result;
}

Extents extents_of(const Array& array, int axis) {
    Extents extents{1, 1, array.dtype.components()};
    for (int i = 0; i < array.ndim; ++i) {
        std::int64_t size = array.view.shape[i];
        (axis < 0 || i == axis ? extents.count : i < axis ? extents.outer : extents.width) *= size;
    }
    return extents;
}

// Writes one total for each component of each element.
void write_totals(const std::vector<Total>& totals, Scalar of, const Array& to) {
    const CpuDevice::Access access(*to.device);
    bool real = info(of).is_float();
    Scalar wide = real ? Scalar::f64 : info(of).is_signed() ? Scalar::i64 : Scalar::u64;
    Array packed = to.is_contiguous() ? to : empty(to.dtype, to.shape(), *to.device);
    Scalar scalar = to.dtype.scalar();
    auto* at = static_cast<std::byte*>(packed.view.data);
    for (const Total& total : totals) {
        const Number number = real ? Number::real(total.real) : Number::integer(total.whole);
        write_scalar(scalar, convert(number, wide, scalar), at);  // narrow integers wrap, as sums in their own width
                                                                  // would
        at += info(scalar).bytes();
    }
    if (!to.is_contiguous()) copy(to, packed);
}

}  // namespace

std::vector<Total> CpuPrimitives::sum(const Array& array, int axis) {
    const CpuDevice::Access access(*array.device);
    Array packed = contiguous(array);
    return visit_scalar(array.dtype.scalar(), [&](auto number) {
        return reduce<decltype(number), false>(packed.view.data, nullptr, extents_of(array, axis));
    });
}

std::vector<Total> CpuPrimitives::inner(const Array& a, const Array& b, int axis) {
    const CpuDevice::Access access(*a.device);
    Array left = contiguous(a), right = contiguous(b);
    Extents extents = extents_of(a, axis);
    int components = a.dtype.components();
    // If the axis is directly before the components, they form one contiguous axis.
    if (extents.width == components) {
        extents.count *= components;
        extents.width = components = 1;
    }
    std::vector<Total> totals = visit_scalar(a.dtype.scalar(), [&](auto number) {
        return reduce<decltype(number), true>(left.view.data, right.view.data, extents);
    });
    if (components == 1) return totals;
    std::vector<Total> result(totals.size() / static_cast<std::size_t>(components));
    for (std::size_t i = 0; i < totals.size(); ++i) {
        Total& total = result[i / static_cast<std::size_t>(components)];
        total.real += totals[i].real;
        total.whole = static_cast<std::int64_t>(static_cast<std::uint64_t>(total.whole) +
                                                static_cast<std::uint64_t>(totals[i].whole));
    }
    return result;
}

void CpuPrimitives::sum_into(const Array& array, int axis, const Array& to) {
    write_totals(sum(array, axis), array.dtype.scalar(), to);
}

void CpuPrimitives::inner_into(const Array& a, const Array& b, int axis, const Array& to) {
    write_totals(inner(a, b, axis), a.dtype.scalar(), to);
}

}  // namespace weft::runtime
