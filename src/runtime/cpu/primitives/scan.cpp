// Running sums, in two passes over tiles: the sum of each tile, then the scan of each tile from the total of those
// before it. A single tile needs one pass only.
//
// Sums of floats have one order of additions on all devices, that of devlib/cuda/scan.cpp and look_back.h. A lane has
// kItems numbers. Its sum is of every fourth of them; the running sums over kLanes lanes come from the network of Kogge
// and Stone; kWarps of these one after the other make a tile. Running sums over kFan tiles, and over kFan groups of
// tiles, take the same network, and spans of kFan groups are added one after the other. The sum of all before a lane is
// added to the running sums of its numbers. Sums of integers have the same bits in any order.
#include <algorithm>

#include "runtime/array_copies.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/primitives.h"
#include "runtime/cpu/primitives/numbers.h"

namespace weft::runtime {
namespace {

constexpr int kItems = 16, kLanes = 32, kWarps = 8, kFan = 32;
constexpr std::int64_t kWarpNumbers = kItems * kLanes;
constexpr std::int64_t kTile = kWarpNumbers * kWarps;

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

// ---- integers: in any order ----

constexpr int kGroup = 8;

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

// ---- the order of additions of floats ----

// Replaces numbers by their running sums, each included.
template <typename Sum>
void scan_lanes(Sum (&sums)[kFan]) {
    for (int distance = 1; distance < kFan; distance *= 2) {
        Sum before[kFan];
        std::copy(std::begin(sums), std::end(sums), before);
        for (int lane = distance; lane < kFan; ++lane) sums[lane] = before[lane - distance] + before[lane];
    }
}
static_assert(kLanes == kFan);

// kWarpNumbers numbers that follow each other.
template <typename T>
struct WarpNumbers {
    const T* from;
    T* to;

    // The sum of each lane's numbers: every fourth in a sum of its own.
    void add_lanes(double* sums) const {
        for (int lane = 0; lane < kLanes; ++lane) {
            double parts[4] = {};
            for (int i = 0; i < kItems; ++i) parts[i % 4] += from[lane * kItems + i];
            sums[lane] = (parts[0] + parts[2]) + (parts[1] + parts[3]);
        }
    }
    // Writes the running sums of each lane's numbers, each added to the lane's carry.
    template <bool kInclusive>
    void write(const double* carries) const {
        for (int lane = 0; lane < kLanes; ++lane) {
            double sum = 0;
            for (int i = lane * kItems; i < (lane + 1) * kItems; ++i) {
                const double before = sum;
                sum += from[i];
                to[i] = static_cast<T>(carries[lane] + (kInclusive ? sum : before));
            }
        }
    }
};

#if WEFT_WIDE_REGISTERS
using Four = double __attribute__((vector_size(32), aligned(8), may_alias));

[[gnu::always_inline]] inline Four load_four(const double* from) { return *reinterpret_cast<const Four*>(from); }
[[gnu::always_inline]] inline void store_four(double* to, Four numbers) { *reinterpret_cast<Four*>(to) = numbers; }
using FourNarrow = float __attribute__((vector_size(16), aligned(4), may_alias));
[[gnu::always_inline]] inline Four load_four(const float* from) {
    return __builtin_convertvector(*reinterpret_cast<const FourNarrow*>(from), Four);
}

[[gnu::always_inline]] inline void transpose(Four (&rows)[4]) {
    const Four a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 2, 6);
    const Four b = __builtin_shufflevector(rows[0], rows[1], 1, 5, 3, 7);
    const Four c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 2, 6);
    const Four d = __builtin_shufflevector(rows[2], rows[3], 1, 5, 3, 7);
    rows[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    rows[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    rows[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    rows[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// As WarpNumbers, with four lanes in a register.
template <typename T>
struct WideWarpNumbers {
    const T* from;
    T* to;

    [[gnu::always_inline]] inline void add_lanes(double* sums) const {
        for (int first = 0; first < kLanes; first += 4) {
            Four parts[4];
            for (int lane = 0; lane < 4; ++lane) {
                const T* const row = from + (first + lane) * kItems;
                parts[lane] = Four{} + load_four(row);
                for (int i = 4; i < kItems; i += 4) parts[lane] += load_four(row + i);
            }
            transpose(parts);
            store_four(sums + first, (parts[0] + parts[2]) + (parts[1] + parts[3]));
        }
    }
    template <bool kInclusive>
    [[gnu::always_inline]] inline void write(const double* carries) const {
        for (int first = 0; first < kLanes; first += 4) {
            const Four carry = load_four(carries + first);
            Four sum = {};
            for (int i = 0; i < kItems; i += 4) {
                Four numbers[4];
                for (int lane = 0; lane < 4; ++lane) numbers[lane] = load_four(from + (first + lane) * kItems + i);
                transpose(numbers);
                for (Four& each : numbers) {
                    const Four before = sum;
                    sum += each;
                    each = carry + (kInclusive ? sum : before);
                }
                transpose(numbers);
                for (int lane = 0; lane < 4; ++lane) store_four(to + (first + lane) * kItems + i, numbers[lane]);
            }
        }
    }
};
#endif

template <typename Numbers>
[[gnu::always_inline]] inline double add_warp(const Numbers& numbers) {
    double sums[kLanes];
    numbers.add_lanes(sums);
    for (int distance = 1; distance < kLanes; distance *= 2)  // the last lane's way through scan_lanes()
        for (int lane = kLanes - 1; lane >= 0; lane -= 2 * distance) sums[lane] = sums[lane - distance] + sums[lane];
    return sums[kLanes - 1];
}

// Returns the sum of the numbers.
template <bool kInclusive, typename Numbers>
[[gnu::always_inline]] inline double scan_warp(const Numbers& numbers, double carry, double warps_before) {
    double sums[kLanes], carries[kLanes];
    numbers.add_lanes(sums);
    scan_lanes(sums);
    carries[0] = carry + warps_before;
    for (int lane = 1; lane < kLanes; ++lane) carries[lane] = carry + (warps_before + sums[lane - 1]);
    numbers.template write<kInclusive>(carries);
    return sums[kLanes - 1];
}

// The tile of a column from `begin` to `end`. Numbers pass through a buffer of doubles, unless they follow each other
// and need no conversion back.
template <template <typename> typename Numbers, typename T>
[[gnu::always_inline]] inline double add_tile(const Column<T>& column, std::int64_t begin) {
    double total = 0;
    for (std::int64_t at = begin; at < begin + kTile; at += kWarpNumbers) {
        if constexpr (std::is_floating_point_v<T>) {
            if (column.stride == 1) {
                total += add_warp(Numbers<T>{column.from + at, nullptr});
                continue;
            }
        }
        double numbers[kWarpNumbers];
        for (int i = 0; i < kWarpNumbers; ++i) numbers[i] = widened(column.from[(at + i) * column.stride]);
        total += add_warp(Numbers<double>{numbers, nullptr});
    }
    return total;
}

template <bool kInclusive, template <typename> typename Numbers, typename T>
[[gnu::always_inline]] inline void scan_tile(const Column<T>& column, std::int64_t begin, std::int64_t end,
                                             double carry) {
    double before = 0;
    for (std::int64_t at = begin; at < end; at += kWarpNumbers) {
        const auto count = static_cast<int>(std::min(kWarpNumbers, end - at));
        if constexpr (std::is_same_v<T, double>) {
            if (column.stride == 1 && count == kWarpNumbers) {
                before += scan_warp<kInclusive>(Numbers<T>{column.from + at, column.to + at}, carry, before);
                continue;
            }
        }
        double numbers[kWarpNumbers];
        const T* const from = column.from + at * column.stride;
        T* const to = column.to + at * column.stride;
        for (int i = 0; i < count; ++i) numbers[i] = widened(from[i * column.stride]);
        std::fill(numbers + count, numbers + kWarpNumbers, 0.0);
        before += scan_warp<kInclusive>(Numbers<double>{numbers, numbers}, carry, before);
        for (int i = 0; i < count; ++i) store(to + i * column.stride, numbers[i]);
    }
}

#if WEFT_WIDE_REGISTERS
// No fused multiply-add: the same bits on every machine.
template <typename T>
[[gnu::target("avx2")]] double add_tile_wide(const Column<T>& column, std::int64_t begin) {
    return add_tile<WideWarpNumbers>(column, begin);
}
template <bool kInclusive, typename T>
[[gnu::target("avx2")]] void scan_tile_wide(const Column<T>& column, std::int64_t begin, std::int64_t end,
                                            double carry) {
    scan_tile<kInclusive, WideWarpNumbers>(column, begin, end, carry);
}
#endif

// ---- tiles ----

// Of a whole tile.
template <typename T>
SumOf<T> tile_sum(const Column<T>& column, std::int64_t tile) {
    const std::int64_t begin = tile * kTile;
    if constexpr (!kIsReal<T>) {
        return block_sum(column, begin, begin + kTile);
    } else {
#if WEFT_WIDE_REGISTERS
        if (has_wide_registers) return add_tile_wide(column, begin);
#endif
        return add_tile<WarpNumbers>(column, begin);
    }
}

template <bool kInclusive, typename T>
void scan_tile(const Column<T>& column, std::int64_t tile, std::int64_t count, SumOf<T> carry) {
    const std::int64_t begin = tile * kTile, end = std::min(count, begin + kTile);
    if constexpr (!kIsReal<T>) {
        scan_block<T, kInclusive>(column, begin, end, carry);
    } else {
#if WEFT_WIDE_REGISTERS
        if (has_wide_registers) return scan_tile_wide<kInclusive>(column, begin, end, carry);
#endif
        scan_tile<kInclusive, WarpNumbers>(column, begin, end, carry);
    }
}

// Replaces the sums of tiles by those of all tiles before.
template <typename Sum>
void add_tiles(std::vector<Sum>& tiles) {
    const auto count = static_cast<std::int64_t>(tiles.size());
    const auto at = [&](std::int64_t tile) -> Sum& { return tiles[static_cast<std::size_t>(tile)]; };
    Sum of_spans{};
    for (std::int64_t span = 0; span < count; span += kFan * kFan) {
        Sum within[kFan][kFan] = {};  // running sums over the tiles of each group
        Sum groups[kFan] = {}, running[kFan];
        for (int group = 0; group < kFan; ++group) {
            const std::int64_t first = span + group * kFan;
            for (int i = 0; i < kFan && first + i < count; ++i) within[group][i] = at(first + i);
            const Sum last = within[group][kFan - 1];
            scan_lanes(within[group]);
            groups[group] = within[group][kFan - 2] + last;
        }
        std::copy(std::begin(groups), std::end(groups), running);
        scan_lanes(running);
        for (int group = 0; group < kFan; ++group) {
            const Sum before = of_spans + (group == 0 ? Sum{} : running[group - 1]);
            const std::int64_t first = span + group * kFan;
            for (int i = 0; i < kFan && first + i < count; ++i)
                at(first + i) = before + (i == 0 ? Sum{} : within[group][i - 1]);
        }
        of_spans = of_spans + running[kFan - 2] + groups[kFan - 1];
    }
}

// The components of a tile are scanned by one thread, which then has the tile in its cache.
template <typename T>
void scan_columns(const T* from, T* to, std::int64_t components, std::int64_t count, bool inclusive) {
    const std::int64_t tiles = (count + kTile - 1) / kTile;
    std::vector<std::vector<SumOf<T>>> carries(static_cast<std::size_t>(components));
    for (auto& each : carries) each.resize(static_cast<std::size_t>(tiles));
    const auto for_each = [&](std::int64_t number, const auto& visit) {
        for_each_block(number, kTile * components, [&](std::int64_t tile) {
            for (std::int64_t i = 0; i < components; ++i)
                visit(Column<T>{from + i, to + i, components}, tile,
                      carries[static_cast<std::size_t>(i)][static_cast<std::size_t>(tile)]);
        });
    };
    for_each(tiles - 1,
             [](const Column<T>& column, std::int64_t tile, SumOf<T>& carry) { carry = tile_sum(column, tile); });
    if (tiles > 1)
        for (auto& each : carries) add_tiles(each);
    for_each(tiles, [&](const Column<T>& column, std::int64_t tile, SumOf<T>& carry) {
        if (inclusive)
            scan_tile<true>(column, tile, count, carry);
        else
            scan_tile<false>(column, tile, count, carry);
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
        scan_columns(static_cast<const T*>(source.view.data), static_cast<T*>(result.view.data), components,
                     from.size(), inclusive);
    });
    if (!direct) copy(to, result);
}

}  // namespace weft::runtime
