// Runs of equal numbers in one pass: each tile counts the runs that begin in it, and look_back.h finds the number of
// those before and the begin of the last of them. The thread that finds the next begin writes a run's length. Numbers
// are compared by value: -0 equals 0, a NaN equals nothing.
#include "devlib/cuda/look_back.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"
#include "devlib/cuda/tiles.h"

namespace weft::devlib {

namespace {

// The number of runs that begin in a part of the array, and the begin of the last. A sum is of neighbouring parts.
template <typename Integer>
struct Begun {
    Integer count, last;

    friend Begun operator+(const Begun& left, const Begun& right) {
        return {left.count + right.count, right.count > 0 ? right.last : left.last};
    }
};

template <typename Format>
class Tile {
public:
    using Stored = typename Format::Stored;
    using Own = Exchange<Stored>;

    explicit Tile(const RunsPlan& plan) : plan_(plan) {}

    void run() const {
        if (thread() == 0) {
            const Ticket ticket = take_ticket(plan_.state);
            shared_number = ticket.number;
            shared_launch = ticket.launch;
        }
        __syncthreads();
        const std::int64_t tile = shared_number, begin = tile * kScanTile;
        const int lane = lane_in_warp(), warp = thread() / static_cast<int>(kWarp);
        const Own own(shared_pieces + warp * static_cast<int>(kWarp) * Own::kPieces);
        own.template load<Format>(plan_, plan_.values, begin + warp * kWarpNumbers, plan_.count, 1, 0);
        const std::int64_t first = begin + thread() * kScanItems;
        const std::uint32_t begins = find_begins(own, first);

        const Begun<std::int32_t> mine = {__builtin_popcount(begins),
                                          begins == 0 ? 0 : thread() * kScanItems + 31 - __builtin_clz(begins)};
        const Begun<std::int32_t> of_lanes = scan_lanes(mine, lane);
        if (lane == kWarp - 1) shared_warps[warp] = of_lanes;
        const Begun<std::int32_t> lanes_before = from_lane_above(of_lanes, 1);
        __syncthreads();
        Begun<std::int32_t> total{}, in_tile{};
        for (int i = 0; i < kScanWarps; ++i) {
            if (i == warp) in_tile = total;
            total = total + Begun<std::int32_t>(shared_warps[i]);
        }
        if (lane > 0) in_tile = in_tile + lanes_before;
        if (warp == 0) {
            const auto before = Chain<Begun<std::int64_t>>(plan_.state, 0, plan_.tiles)
                                    .before(tile, in_array(total, begin), shared_launch);
            if (lane == 0) shared_before = before;
        }
        __syncthreads();
        const Begun<std::int64_t> before_tile = shared_before;
        write_runs(begins, first, before_tile + in_array(in_tile, begin));
        if (thread() == 0 && tile == plan_.tiles - 1) end(before_tile + in_array(total, begin));
    }

private:
    static int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
    static Begun<std::int64_t> in_array(const Begun<std::int32_t>& in_tile, std::int64_t begin) {
        return {in_tile.count, in_tile.count > 0 ? begin + in_tile.last : 0};
    }

    // A bit for each of the thread's numbers, from `first` on.
    std::uint32_t find_begins(const Own& own, std::int64_t first) const {
        const int lane = lane_in_warp();
        Stored before{};
        if (lane > 0)
            before = own.number(lane * kScanItems - 1);
        else if (first > 0 && first < plan_.count)
            before = Format::load(plan_, plan_.values, first - 1);
        std::uint32_t begins = 0, bit = 1;
        own.for_each(lane, [&](const Stored& number) {
            if (!(number == before)) begins |= bit;
            before = number;
            bit <<= 1;
        });
        if (first == 0) begins |= 1;
        const std::int64_t count = plan_.count - first;
        return count >= kScanItems ? begins : count <= 0 ? 0 : begins & ((1u << count) - 1);
    }

    void write_runs(std::uint32_t begins, std::int64_t first, Begun<std::int64_t> before) const {
        for (; begins != 0; begins &= begins - 1) {
            const std::int64_t at = first + __builtin_ctz(begins), run = before.count;
            if (run > 0) write_length(run - 1, before.last, at);
            if (run < plan_.values_room)
                Format::copy(plan_.run_values + run * plan_.values_stride, plan_.values + at * plan_.bytes,
                             plan_.bytes);
            before = {run + 1, at};
        }
    }
    void write_length(std::int64_t run, std::int64_t begin, std::int64_t end) const {
        const std::int64_t length = end - begin;
        if (length > 0x7FFFFFFF) {
            if (!is_first(plan_.found + 1, run + 1)) return;
            plan_.found[2] = begin;
            plan_.found[3] = length;
        } else if (run < plan_.lengths_room) {
            *reinterpret_cast<std::int32_t*>(plan_.run_lengths + run * plan_.lengths_stride) =
                static_cast<std::int32_t>(length);
        }
    }
    void end(const Begun<std::int64_t>& all) const {
        write_length(all.count - 1, all.last, plan_.count);
        plan_.found[0] = all.count;
        if (plan_.count <= 0x7FFFFFFF) plan_.found[1] = plan_.found[2] = plan_.found[3] = 0;
        if (plan_.told) *plan_.told = static_cast<std::int32_t>(all.count);
    }

    [[clang::loader_uninitialized]] static inline
        __attribute__((address_space(3))) Piece shared_pieces[kScanThreads * Own::kPieces];
    [[clang::loader_uninitialized]] static inline
        __attribute__((address_space(3))) Begun<std::int32_t> shared_warps[kScanWarps];
    [[clang::loader_uninitialized]] static inline __attribute__((address_space(3))) Begun<std::int64_t> shared_before;
    [[clang::loader_uninitialized]] static inline __attribute__((address_space(3))) std::uint32_t shared_number,
        shared_launch;

    const RunsPlan& plan_;
};

}  // namespace

extern "C" {

#define WEFT_RUNS(name, ...) \
    [[clang::device_kernel]] void weft_runs_##name(RunsPlan plan) { Tile<__VA_ARGS__>(plan).run(); }
WEFT_RUNS(f32, PlainNumbers<float, double>)
WEFT_RUNS(f64, PlainNumbers<double, double>)
WEFT_RUNS(u32, PlainNumbers<std::uint32_t, std::uint32_t>)
WEFT_RUNS(u64, PlainNumbers<std::uint64_t, std::uint64_t>)
WEFT_RUNS(real, WidenedNumbers<double>)
WEFT_RUNS(whole, WidenedNumbers<std::uint64_t>)
#undef WEFT_RUNS

}  // extern "C"

}  // namespace weft::devlib
