// Running sums in one pass, in the CPU's order of additions (runtime/cpu/primitives/scan.cpp), so that results are
// bitwise equal: a thread adds every fourth of its numbers, a warp its threads, a block its warps, and look_back.h
// finds the sum of the tiles before. To that, the running sums of the thread's numbers are added.
#include "devlib/cuda/look_back.h"
#include "devlib/cuda/primitives.h"
#include "devlib/cuda/threads.h"
#include "devlib/cuda/tiles.h"

namespace weft::devlib {

namespace {

template <typename Format>
void scan(const ScanPlan& plan) {
    using Stored = typename Format::Stored;
    using Sum = typename Format::Sum;
    using Own = Exchange<Stored>;
    [[clang::loader_uninitialized]] static __attribute__((address_space(3))) Piece pieces[kScanThreads * Own::kPieces];
    [[clang::loader_uninitialized]] static __attribute__((address_space(3))) Sum totals[kScanWarps], carry_of_block;
    [[clang::loader_uninitialized]] static __attribute__((address_space(3))) std::uint32_t number, launch;
    const int thread = __nvvm_read_ptx_sreg_tid_x(), lane = lane_in_warp(), warp = thread / static_cast<int>(kWarp);
    if (thread == 0) {
        const Ticket ticket = take_ticket(plan.state);
        number = ticket.number;
        launch = ticket.launch;
    }
    __syncthreads();
    const std::int64_t tile = plan.components == 1 ? number : number / static_cast<std::uint32_t>(plan.components);
    const std::int64_t component = number - tile * plan.components;
    const std::int64_t begin = tile * kScanTile + warp * kWarpNumbers;
    const Own own(pieces + warp * static_cast<int>(kWarp) * Own::kPieces);
    own.template load<Format>(plan, plan.from, begin, plan.count, plan.components, component);

    // ---- sums in the tile ----
    Sum parts[4] = {};
    int item = 0;
    own.for_each(lane, [&](auto& number) { parts[item++ % 4] += static_cast<Sum>(number); });
    Sum sum = (parts[0] + parts[2]) + (parts[1] + parts[3]);
    const Sum of_lanes = scan_lanes(sum, lane);
    if (lane == kWarp - 1) totals[warp] = of_lanes;
    const Sum lanes_before = from_lane_above(of_lanes, 1);
    __syncthreads();
    Sum total{}, in_tile{};
    for (int i = 0; i < kScanWarps; ++i) {
        if (i == warp) in_tile = total;
        total += totals[i];
    }
    if (lane > 0) in_tile += lanes_before;
    if (warp == 0) {
        const Sum before = Chain<Sum>(plan.state, component, plan.tiles).before(tile, total, launch);
        if (lane == 0) carry_of_block = before;
    }
    __syncthreads();

    // ---- results ----
    const Sum carry = carry_of_block + in_tile;
    sum = Sum{};
    own.for_each(lane, [&](auto& number) {
        const Sum before = sum;
        sum += static_cast<Sum>(number);
        number = static_cast<Stored>(carry + (plan.inclusive ? sum : before));
    });
    __nvvm_bar_warp_sync(kAllLanes);
    if (Format::kHasPieces && plan.in_pieces && begin + kWarpNumbers <= plan.count) {
        auto* const to = reinterpret_cast<Piece*>(plan.to + begin * std::int64_t{sizeof(Stored)});
        for (int i = 0; i < Own::kPieces; ++i) to[i * kWarp + lane] = own.piece(i * static_cast<int>(kWarp) + lane);
    } else {
        for_each_number(begin, plan.count, [&](int place, std::int64_t at, bool is_there) {
            if (is_there) Format::store(plan, at * plan.components + component, own.number(place));
        });
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_scan_f32(ScanPlan plan) { scan<PlainNumbers<float, double>>(plan); }
[[clang::device_kernel]] void weft_scan_f64(ScanPlan plan) { scan<PlainNumbers<double, double>>(plan); }
[[clang::device_kernel]] void weft_scan_u32(ScanPlan plan) { scan<PlainNumbers<std::uint32_t, std::uint32_t>>(plan); }
[[clang::device_kernel]] void weft_scan_u64(ScanPlan plan) { scan<PlainNumbers<std::uint64_t, std::uint64_t>>(plan); }
[[clang::device_kernel]] void weft_scan_real(ScanPlan plan) { scan<WidenedNumbers<double>>(plan); }
[[clang::device_kernel]] void weft_scan_whole(ScanPlan plan) { scan<WidenedNumbers<std::uint64_t>>(plan); }

}  // extern "C"

}  // namespace weft::devlib
