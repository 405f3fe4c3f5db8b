// Running sums.
//
// Integers take two passes over blocks: the sum of each block, then the scan of each block from the total of those
// before it. Their sums have the same bits in any order.
//
// Floats take one pass over tiles. A thread takes the next tile, adds its numbers, gets the sum of the tiles before
// from a chain and scans the tile, which then lies in its cache. No thread waits for another to be done: a tile whose
// chain is not there yet, because another thread was held up, is scanned in a second pass.
//
// Sums of floats have one order of additions on all devices, that of devlib/cuda/scan.cpp and look_back.h. A lane has
// kItems numbers. Its sum is of every fourth of them; the running sums over kLanes lanes come from the network of Kogge
// and Stone; kWarps of these one after the other make a tile. Running sums over kFan tiles, and over kFan groups of
// tiles, take the same network, and spans of kFan groups are added one after the other. The sum of all before a lane is
// added to the running sums of its numbers.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

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
        to->bits = static_cast<decltype(to->bits)>(small_float::narrow(odd_float_bits(sum), T::format));
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

template <typename T>
void scan_column(const Column<T>& column, std::int64_t count, bool inclusive) {
    constexpr std::int64_t kBlock = 1 << 14;
    const std::int64_t blocks = (count + kBlock - 1) / kBlock;
    std::vector<SumOf<T>> carries(static_cast<std::size_t>(blocks));
    const auto end_of = [&](std::int64_t block) { return std::min(count, (block + 1) * kBlock); };
    for_each_block(blocks - 1, kBlock, [&](std::int64_t block) {
        carries[static_cast<std::size_t>(block + 1)] = block_sum(column, block * kBlock, end_of(block));
    });
    for (std::size_t block = 1; block < carries.size(); ++block) carries[block] += carries[block - 1];
    for_each_block(blocks, kBlock, [&](std::int64_t block) {
        const SumOf<T> carry = carries[static_cast<std::size_t>(block)];
        if (inclusive)
            scan_block<T, true>(column, block * kBlock, end_of(block), carry);
        else
            scan_block<T, false>(column, block * kBlock, end_of(block), carry);
    });
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

// A number for each lane.
using Lanes = double[kLanes];

// kWarpNumbers elements that follow each other, each of kComponents numbers.
template <typename T, int kComponents>
struct WarpNumbers {
    const T* from;
    T* to;

    // The sum of each lane's numbers: every fourth in a sum of its own.
    void add_lanes(Lanes* sums) const {
        for (int component = 0; component < kComponents; ++component) {
            for (int lane = 0; lane < kLanes; ++lane) {
                double parts[4] = {};
                for (int i = 0; i < kItems; ++i) parts[i % 4] += from[(lane * kItems + i) * kComponents + component];
                sums[component][lane] = (parts[0] + parts[2]) + (parts[1] + parts[3]);
            }
        }
    }
    // Replaces the lanes' sums by those of all numbers before; `before` is that
    // of the warp. Returns the warp's sum.
    static double add_up(Lanes& sums, double before) {
        scan_lanes(sums);
        const double total = sums[kLanes - 1];
        for (int lane = kLanes - 1; lane > 0; --lane) sums[lane] = before + sums[lane - 1];
        sums[0] = before;
        return total;
    }
    // Writes the running sums of each lane's numbers, each added to the sums of
    // those before the tile and the lane.
    template <bool kInclusive>
    void write(const double* carries, const Lanes* lanes_before) const {
        for (int component = 0; component < kComponents; ++component) {
            for (int lane = 0; lane < kLanes; ++lane) {
                const double carry = carries[component] + lanes_before[component][lane];
                double sum = 0;
                for (int i = lane * kItems; i < (lane + 1) * kItems; ++i) {
                    const double before = sum;
                    sum += from[i * kComponents + component];
                    to[i * kComponents + component] = static_cast<T>(carry + (kInclusive ? sum : before));
                }
            }
        }
    }
};

#if WEFT_WIDE_REGISTERS
using Four = double __attribute__((vector_size(32)));
using FourNarrow = float __attribute__((vector_size(16)));

[[gnu::always_inline]] inline Four load_four(const double* from) {
    Four numbers;
    std::memcpy(&numbers, from, sizeof numbers);
    return numbers;
}
[[gnu::always_inline]] inline Four load_four(const float* from) {
    FourNarrow numbers;
    std::memcpy(&numbers, from, sizeof numbers);
    return __builtin_convertvector(numbers, Four);
}
[[gnu::always_inline]] inline void store_four(double* to, Four numbers) { std::memcpy(to, &numbers, sizeof numbers); }
[[gnu::always_inline]] inline void store_four(float* to, Four numbers) {
    const FourNarrow narrow = __builtin_convertvector(numbers, FourNarrow);
    std::memcpy(to, &narrow, sizeof narrow);
}

[[gnu::always_inline]] inline void transpose(Four (&rows)[4]) {
    const Four a = __builtin_shufflevector(rows[0], rows[2], 0, 1, 4, 5);
    const Four b = __builtin_shufflevector(rows[1], rows[3], 0, 1, 4, 5);
    const Four c = __builtin_shufflevector(rows[0], rows[2], 2, 3, 6, 7);
    const Four d = __builtin_shufflevector(rows[1], rows[3], 2, 3, 6, 7);
    rows[0] = __builtin_shufflevector(a, b, 0, 4, 2, 6);
    rows[1] = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    rows[2] = __builtin_shufflevector(c, d, 0, 4, 2, 6);
    rows[3] = __builtin_shufflevector(c, d, 1, 5, 3, 7);
}

// As WarpNumbers, with four lanes in a register.
template <typename T, int kComponents>
struct WideWarpNumbers {
    static constexpr int kRow = kItems * kComponents;  // numbers of a lane
    static constexpr int kRegisters = kLanes / 4;
    const T* from;
    T* to;

    [[gnu::always_inline]] inline void add_lanes(Lanes* sums) const {
        for (int first = 0; first < kLanes; first += 4) {
            // Number j of a lane is of component j % kComponents, and in the sum of
            // part j / kComponents % 4.
            Four parts[4 * kComponents];
#pragma GCC unroll 4
            for (int place = 0; place < kComponents; ++place) {
                Four rows[4];
#pragma GCC unroll 4
                for (int lane = 0; lane < 4; ++lane) {
                    const T* const row = from + (first + lane) * kRow + 4 * place;
                    rows[lane] = Four{} + load_four(row);
#pragma GCC unroll 4
                    for (int i = 1; i < 4; ++i) rows[lane] += load_four(row + i * 4 * kComponents);
                }
                transpose(rows);
#pragma GCC unroll 4
                for (int i = 0; i < 4; ++i) parts[4 * place + i] = rows[i];
            }
#pragma GCC unroll 4
            for (int i = 0; i < kComponents; ++i)
                store_four(sums[i] + first, (parts[i] + parts[2 * kComponents + i]) +
                                                (parts[kComponents + i] + parts[3 * kComponents + i]));
        }
    }
    // Zero, which is added where no lane is so far before, changes no bit: no sum
    // is -0.
    [[gnu::always_inline]] static inline double add_up(Lanes& sums, double before) {
        Four s[kRegisters], shifted[kRegisters];
#pragma GCC unroll 8
        for (int i = 0; i < kRegisters; ++i) s[i] = load_four(sums + 4 * i);
        const Four zero = {};
        const auto shift_by_one = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 8
            for (int i = 0; i < kRegisters; ++i)
                shifted[i] = __builtin_shufflevector(i > 0 ? s[i - 1] : zero, s[i], 3, 4, 5, 6);
        };
        shift_by_one();
#pragma GCC unroll 8
        for (int i = 0; i < kRegisters; ++i) s[i] += shifted[i];
#pragma GCC unroll 8
        for (int i = 0; i < kRegisters; ++i)
            shifted[i] = __builtin_shufflevector(i > 0 ? s[i - 1] : zero, s[i], 2, 3, 4, 5);
#pragma GCC unroll 8
        for (int i = 0; i < kRegisters; ++i) s[i] += shifted[i];
#pragma GCC unroll 3
        for (int distance = 1; distance < kRegisters; distance *= 2)
#pragma GCC unroll 8
            for (int i = kRegisters - 1; i >= distance; --i) s[i] += s[i - distance];
        shift_by_one();
#pragma GCC unroll 8
        for (int i = 0; i < kRegisters; ++i) store_four(sums + 4 * i, before + shifted[i]);
        return s[kRegisters - 1][3];
    }
    template <bool kInclusive>
    [[gnu::always_inline]] inline void write(const double* carries, const Lanes* lanes_before) const {
        for (int first = 0; first < kLanes; first += 4) {
            Four carry[kComponents], sum[kComponents];
#pragma GCC unroll 4
            for (int i = 0; i < kComponents; ++i)
                carry[i] = carries[i] + load_four(lanes_before[i] + first), sum[i] = Four{};
            for (int begin = first * kRow; begin < first * kRow + kRow; begin += 4 * kComponents) {
#pragma GCC unroll 4
                for (int place = 0; place < kComponents; ++place) {
                    Four numbers[4];
#pragma GCC unroll 4
                    for (int lane = 0; lane < 4; ++lane)
                        numbers[lane] = load_four(from + begin + lane * kRow + 4 * place);
                    transpose(numbers);
#pragma GCC unroll 4
                    for (int i = 0; i < 4; ++i) {
                        const int component = (4 * place + i) % kComponents;
                        const Four before = sum[component];
                        sum[component] += numbers[i];
                        numbers[i] = carry[component] + (kInclusive ? sum[component] : before);
                    }
                    transpose(numbers);
#pragma GCC unroll 4
                    for (int lane = 0; lane < 4; ++lane)
                        store_four(to + begin + lane * kRow + 4 * place, numbers[lane]);
                }
            }
        }
    }
};
#endif

// ---- tiles of floats ----

// kComponents numbers of each element of a tile, `stride` apart. They pass
// through a buffer of doubles, unless they are all numbers of whole warps and
// the hardware converts them.
template <bool kInclusive, int kComponents, template <typename, int> typename Numbers, typename T, typename Chain>
[[gnu::always_inline]] inline void scan_tile(const T* from, T* to, std::int64_t stride, std::int64_t count,
                                             std::int64_t tile, Chain& chain) {
    constexpr std::int64_t kDirect = kWarpNumbers * kComponents;
    Lanes sums[kWarps][kComponents];
    double totals[kComponents] = {}, carries[kComponents];
    const auto add = [&](const auto& numbers, Lanes(&lanes)[kComponents]) __attribute__((always_inline)) {
        numbers.add_lanes(lanes);
        for (int i = 0; i < kComponents; ++i) totals[i] += numbers.add_up(lanes[i], totals[i]);
    };
    std::int64_t whole = 0;  // warps without a buffer
    if constexpr (std::is_floating_point_v<T>) {
        if (stride == kComponents) whole = count / kWarpNumbers;
        for (std::int64_t warp = 0; warp < whole; ++warp)
            add(Numbers<T, kComponents>{from + warp * kDirect, nullptr}, sums[warp]);
    }
    // Components that are scanned together have a buffer for the last warp only.
    double buffer[kComponents == 1 ? kTile : kDirect];
    const std::int64_t warps = (count + kWarpNumbers - 1) / kWarpNumbers;
    if (whole < warps) {
        const std::int64_t first = whole * kWarpNumbers;
        for (std::int64_t i = first; i < count; ++i)
            for (int k = 0; k < kComponents; ++k) buffer[(i - first) * kComponents + k] = widened(from[i * stride + k]);
        std::fill(buffer + (count - first) * kComponents, buffer + (warps - whole) * kDirect, 0.0);
        for (std::int64_t warp = whole; warp < warps; ++warp)
            add(Numbers<double, kComponents>{buffer + (warp - whole) * kDirect, nullptr}, sums[warp]);
    }
    if (!chain.get_before(tile, totals, carries)) return;
    if constexpr (std::is_floating_point_v<T>) {
        for (std::int64_t warp = 0; warp < whole; ++warp)
            Numbers<T, kComponents>{from + warp * kDirect, to + warp * kDirect}.template write<kInclusive>(carries,
                                                                                                           sums[warp]);
    }
    if (whole < warps) {
        for (std::int64_t warp = whole; warp < warps; ++warp) {
            double* const numbers = buffer + (warp - whole) * kDirect;
            Numbers<double, kComponents>{numbers, numbers}.template write<kInclusive>(carries, sums[warp]);
        }
        const std::int64_t first = whole * kWarpNumbers;
        for (std::int64_t i = first; i < count; ++i)
            for (int k = 0; k < kComponents; ++k) store(to + i * stride + k, buffer[(i - first) * kComponents + k]);
    }
}

#if WEFT_WIDE_REGISTERS
// No fused multiply-add: the same bits on every machine.
template <bool kInclusive, int kComponents, typename T, typename Chain>
[[gnu::target("avx2")]] void scan_tile_wide(const T* from, T* to, std::int64_t stride, std::int64_t count,
                                            std::int64_t tile, Chain& chain) {
    scan_tile<kInclusive, kComponents, WideWarpNumbers>(from, to, stride, count, tile, chain);
}
#endif

// ---- the order of tiles ----

// Running sums over up to kFan numbers that come one after the other, by the additions of scan_lanes().
template <typename Sum>
class RunningSums {
public:
    RunningSums() {}
    Sum sum() const { return count_ == 0 ? Sum{} : steps_[kSteps - 1][count_ - 1]; }
    bool is_full() const { return count_ == kFan - 1; }  // the last of kFan is added to their sum
    void clear() { count_ = 0; }
    void add(Sum number) {
        for (int step = 0; step < kSteps; ++step) {
            steps_[step][count_] = number;
            if (count_ >= 1 << step) number = steps_[step][count_ - (1 << step)] + number;
        }
        ++count_;
    }

private:
    static constexpr int kSteps = 6;
    Sum steps_[kSteps][kFan];  // the first count_ of each
    int count_ = 0;
};

// The sum of the tiles so far.
template <typename Sum>
class TilesBefore {
public:
    Sum sum() const { return before_group_ + group_.sum(); }
    void add(Sum of_tile) {
        if (!group_.is_full()) return group_.add(of_tile);
        const Sum of_group = group_.sum() + of_tile;
        group_.clear();
        if (!span_.is_full()) {
            span_.add(of_group);
        } else {
            spans_ = spans_ + span_.sum() + of_group;
            span_.clear();
        }
        before_group_ = spans_ + span_.sum();
    }

private:
    Sum before_group_{}, spans_{};
    RunningSums<Sum> group_, span_;
};

// The sums of tiles, each of some components, in the order of the tiles.
template <typename Sum>
class Chain {
public:
    Chain(int components, std::int64_t tiles)
        : components_(components),
          tiles_(tiles),
          before_(static_cast<std::size_t>(components)),
          sums_(static_cast<std::size_t>(tiles * components)),
          is_there_(static_cast<std::size_t>(tiles)) {}

    // Gives the sums of all tiles before. False if one of these is not there yet:
    // the tile is then one of deferred(), to be asked for again when all are
    // there.
    bool get_before(std::int64_t tile, const Sum* of_tile, Sum* before) {
        for (int polls = 0;
             next_.load(std::memory_order_relaxed) < tile && !is_held_up_.load(std::memory_order_relaxed);)
            if (++polls == kPolls) break;
        const std::lock_guard lock(mutex_);
        std::int64_t next = next_.load(std::memory_order_relaxed);
        if (tile >= next) {
            std::copy_n(of_tile, components_, sums(tile));
            is_there_[static_cast<std::size_t>(tile)] = 1;
            if (tile > next) {
                deferred_.push_back(tile);
                is_held_up_.store(true, std::memory_order_relaxed);
                return false;
            }
            for (; next < tiles_ && is_there_[static_cast<std::size_t>(next)]; ++next) add(sums(next));
            next_.store(next, std::memory_order_relaxed);
            is_held_up_.store(false, std::memory_order_relaxed);
        }
        std::copy_n(sums(tile), components_, before);
        return true;
    }
    const std::vector<std::int64_t>& deferred() const { return deferred_; }

private:
    static constexpr int kPolls = 3000;  // less time than a tile takes

    Sum* sums(std::int64_t tile) { return sums_.data() + tile * components_; }
    // Replaces the sums of the next tile by those of all before.
    void add(Sum* of_tile) {
        for (int i = 0; i < components_; ++i) {
            TilesBefore<Sum>& before = before_[static_cast<std::size_t>(i)];
            const Sum sum = before.sum();
            before.add(of_tile[i]);
            of_tile[i] = sum;
        }
    }

    const int components_;
    const std::int64_t tiles_;
    std::mutex mutex_;
    std::atomic<std::int64_t> next_{0};    // the first tile whose predecessors are
                                           // not all there; written under the mutex
    std::atomic<bool> is_held_up_{false};  // tiles were deferred since the last one that was not
    std::vector<TilesBefore<Sum>> before_;
    std::vector<Sum> sums_;  // of each tile; below next_: of all tiles before
    std::vector<char> is_there_;
    std::vector<std::int64_t> deferred_;
};

// ---- the whole array ----

// Numbers of components that are scanned together.
template <typename T>
struct Columns {
    const T* from;
    T* to;
    std::int64_t stride, count;
    int together;
};

template <bool kInclusive, int kTogether, typename T>
void scan_tile(const Columns<T>& columns, std::int64_t tile, Chain<SumOf<T>>& chain) {
    const std::int64_t stride = columns.stride, begin = tile * kTile;
    const std::int64_t count = std::min(columns.count - begin, kTile);
    const T* const from = columns.from + begin * stride;
    T* const to = columns.to + begin * stride;
#if WEFT_WIDE_REGISTERS
    if (has_wide_registers) return scan_tile_wide<kInclusive, kTogether>(from, to, stride, count, tile, chain);
#endif
    scan_tile<kInclusive, kTogether, WarpNumbers>(from, to, stride, count, tile, chain);
}

template <bool kInclusive, typename T>
void scan_tile(const Columns<T>& columns, std::int64_t tile, Chain<SumOf<T>>& chain) {
    if constexpr (std::is_floating_point_v<T>) {
        switch (columns.together) {
            case 2:
                return scan_tile<kInclusive, 2>(columns, tile, chain);
            case 3:
                return scan_tile<kInclusive, 3>(columns, tile, chain);
            case 4:
                return scan_tile<kInclusive, 4>(columns, tile, chain);
        }
    }
    scan_tile<kInclusive, 1>(columns, tile, chain);
}

template <typename T>
void scan_floats(const T* from, T* to, std::int64_t components, std::int64_t count, bool inclusive) {
    const std::int64_t tiles = (count + kTile - 1) / kTile;
    const int together = std::is_floating_point_v<T> && components <= 4 ? static_cast<int>(components) : 1;
    std::vector<Columns<T>> columns;
    std::deque<Chain<SumOf<T>>> chains;
    for (std::int64_t i = 0; i < components; i += together) {
        columns.push_back({from + i, to + i, components, count, together});
        chains.emplace_back(together, tiles);
    }
    const auto scan = [&](std::size_t column, std::int64_t tile) {
        if (inclusive)
            scan_tile<true>(columns[column], tile, chains[column]);
        else
            scan_tile<false>(columns[column], tile, chains[column]);
    };
    std::atomic<std::int64_t> next{0};
    for_each_block(tiles, kTile * components, [&](std::int64_t) {
        const std::int64_t tile = next.fetch_add(1, std::memory_order_relaxed);
        for (std::size_t column = 0; column < columns.size(); ++column) scan(column, tile);
    });
    for (std::size_t column = 0; column < columns.size(); ++column) {
        const std::vector<std::int64_t>& deferred = chains[column].deferred();
        for_each_block(static_cast<std::int64_t>(deferred.size()), kTile * together,
                       [&](std::int64_t i) { scan(column, deferred[static_cast<std::size_t>(i)]); });
    }
}

}  // namespace

void CpuPrimitives::scan(const Array& from, const Array& to, bool inclusive) {
    const CpuDevice::Access access(*from.device);
    Array source = contiguous(from);
    // In place only if both are the same elements; other overlaps need a
    // temporary.
    bool direct = to.is_contiguous() && (to.view.data == source.view.data || !overlap(to, source));
    Array result = direct ? to : empty(to.dtype, to.shape(), *to.device);
    std::int64_t components = from.dtype.components();
    visit_scalar(from.dtype.scalar(), [&](auto number) {
        using T = decltype(number);
        const auto* const numbers = static_cast<const T*>(source.view.data);
        auto* const sums = static_cast<T*>(result.view.data);
        if constexpr (kIsReal<T>) {
            scan_floats(numbers, sums, components, from.size(), inclusive);
        } else {
            for (std::int64_t i = 0; i < components; ++i)
                scan_column<T>({numbers + i, sums + i, components}, from.size(), inclusive);
        }
    });
    if (!direct) copy(to, result);
}

}  // namespace weft::runtime
