// Builds of hash grids; hash_grid.h describes the method.
#include "devlib/cuda/hash_grid.h"

#include "devlib/cuda/numbers.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

#define WEFT_SHARED [[clang::loader_uninitialized]] static __attribute__((address_space(3)))

constexpr int kLanes = kWarp, kWarpsOfBlock = kGridThreads / kLanes;
constexpr UInt32 kIsPlace = UInt32(1) << 31;

template <typename Word>
UInt32 add_to(Word* word, UInt32 number) {
    return __scoped_atomic_fetch_add(word, number, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

UInt32 digit_of(UInt32 cell, int shift, int bits) { return cell >> shift & ((UInt32(1) << bits) - 1); }

// ---- cells ----

template <Scalar scalar>
UInt32 cell_of(const GridCellsPlan& plan, std::int64_t point) {
    using Type = typename Row<scalar>::ctype;
    const auto* const place = reinterpret_cast<const Type*>(plan.points + point * plan.point_stride);
    const UInt32 group =
        plan.groups ? *reinterpret_cast<const UInt32*>(plan.groups + point * plan.group_stride) : UInt32(0);
    UInt32 cell = 0;
    for (int axis = 2; axis >= 0; --axis) {
        const auto dim = static_cast<double>(plan.dims[axis]);
        const double along = cell_along(load_row<scalar, double>(place + axis), group_offset(group, axis),
                                        plan.inverse_width, dim, 1.0 / dim);
        cell = cell * static_cast<UInt32>(plan.dims[axis]) + static_cast<UInt32>(along);
    }
    return cell;
}

template <Scalar scalar>
void find_cells(const GridCellsPlan& plan) {
    WEFT_SHARED UInt32 digits[kGridMostPasses * kGridDigits];
    const int words = plan.passes * kGridDigits;
    for (int word = block_thread(); word < words; word += kGridThreads) digits[word] = 0;
    __syncthreads();
    for (std::int64_t i = thread_index(); i < plan.count; i += threads()) {
        const UInt32 cell = cell_of<scalar>(plan, i);
        plan.cells[i] = cell;
        for (int pass = 0; pass < plan.passes; ++pass)
            add_to(digits + pass * kGridDigits + digit_of(cell, pass * plan.bits, plan.bits), 1);
    }
    __syncthreads();
    for (int word = block_thread(); word < words; word += kGridThreads)
        if (const UInt32 found = digits[word]; found != 0) add_to(plan.digits + word, found);
}

// ---- a pass ----

// The sum of the numbers of the threads before this one. All threads of the block must call it.
UInt32 sum_before(UInt32 number) {
    WEFT_SHARED UInt32 sums[kWarpsOfBlock];
    const int warp = block_thread() / kLanes, own = block_thread() % kLanes;
    UInt32 sum = number;
    for (int distance = 1; distance < kLanes; distance *= 2) {
        const auto other =
            static_cast<UInt32>(__nvvm_shfl_sync_up_i32(kAllLanes, static_cast<int>(sum), distance, /*clamp=*/0));
        if (own >= distance) sum += other;
    }
    if (own == kLanes - 1) sums[warp] = sum;
    __syncthreads();
    UInt32 before = sum - number;
    for (int other = 0; other < warp; ++other) before += sums[other];
    __syncthreads();
    return before;
}

// The lanes of `active` with the same digit as this one.
UInt32 lanes_with(UInt32 digit, int bits, UInt32 active) {
    UInt32 same = active;
    for (int bit = 0; bit < bits; ++bit) {
        const bool is_set = digit >> bit & 1;
        const UInt32 votes = __nvvm_vote_ballot_sync(kAllLanes, is_set);
        same &= is_set ? votes : ~votes;
    }
    return same;
}

// The place of this tile's first point of a digit: that of the closest tile before whose place is known, and the points
// of those between. They have begun before this one, so that the wait ends.
UInt32 place_after_earlier_tiles(const UInt32* progress, int digits) {
    UInt32 sum = 0;
    for (;;) {
        const UInt32 known = __scoped_atomic_load_n(progress - digits, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
        if (known & kIsPlace) return sum + (known & ~kIsPlace);
        if (known == 0) continue;
        sum += known - 1;
        progress -= digits;
    }
}

void tell(UInt32* word, UInt32 number) {
    __scoped_atomic_store_n(word, number, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

void sort_tile(const GridSortPlan& plan) {
    WEFT_SHARED UInt32 counters[kWarpsOfBlock * kGridDigits];  // by warp and digit
    WEFT_SHARED UInt32 cells[kGridTile];
    WEFT_SHARED Int32 numbers[kGridTile];
    WEFT_SHARED UInt32 starts[kGridDigits];  // of each digit in the tile
    WEFT_SHARED UInt32 shifts[kGridDigits];  // from there to the place among all points
    WEFT_SHARED UInt32 own_tile;
    const int thread = block_thread(), digits = 1 << plan.bits;
    if (thread == 0) own_tile = add_to(plan.next_tile, 1);
    for (int i = thread; i < kWarpsOfBlock * digits; i += kGridThreads) counters[i] = 0;
    __syncthreads();
    // Indices of points are below 2^31 + kGridTile.
    const UInt32 tile = own_tile, first = tile * kGridTile, count = static_cast<UInt32>(plan.count);
    const UInt32 own_first = first + static_cast<UInt32>(thread / kLanes * (kLanes * kGridItems) + thread % kLanes);
    auto* const own = counters + thread / kLanes * digits;
    UInt32* const progress = plan.progress + (static_cast<std::int64_t>(tile) << plan.bits) + thread;

    UInt32 own_cells[kGridItems], ranks[kGridItems];
#pragma unroll
    for (int k = 0; k < kGridItems; ++k) {
        const UInt32 i = own_first + static_cast<UInt32>(k * kLanes);
        const bool is_there = i < count;
        own_cells[k] = is_there ? plan.cells[i] : 0;
        const UInt32 digit = digit_of(own_cells[k], plan.shift, plan.bits);
        const UInt32 same = lanes_with(digit, plan.bits, __nvvm_vote_ballot_sync(kAllLanes, is_there));
        const int rank = __builtin_popcount(same & ((1u << thread % kLanes) - 1));
        const UInt32 before = is_there ? own[digit] : 0;
        __nvvm_bar_warp_sync(kAllLanes);
        if (is_there && rank == 0) own[digit] = before + static_cast<UInt32>(__builtin_popcount(same));
        __nvvm_bar_warp_sync(kAllLanes);
        ranks[k] = before + static_cast<UInt32>(rank);
    }
    __syncthreads();

    // A thread has a digit.
    UInt32 total = 0;
    if (thread < digits) {
        for (int at = thread; at < kWarpsOfBlock * digits; at += digits) {
            const UInt32 of_warp = counters[at];
            counters[at] = total;
            total += of_warp;
        }
        if (tile != 0) tell(progress, total + 1);
    }
    const UInt32 start = sum_before(total);
    UInt32 place = 0;
    if (tile == 0) place = sum_before(thread < digits ? plan.digits[thread] : 0);
    if (thread < digits) {
        if (tile != 0) place = place_after_earlier_tiles(progress, digits);
        tell(progress, kIsPlace | (place + total));
        starts[thread] = start;
        shifts[thread] = place - start;
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < kGridItems; ++k) {
        const UInt32 i = own_first + static_cast<UInt32>(k * kLanes);
        if (i >= count) continue;
        const UInt32 digit = digit_of(own_cells[k], plan.shift, plan.bits);
        const UInt32 at = starts[digit] + own[digit] + ranks[k];
        cells[at] = own_cells[k];
        numbers[at] = plan.numbers ? plan.numbers[i] : static_cast<Int32>(i);
    }
    __syncthreads();
    for (int i = thread; i < kGridTile && first + static_cast<UInt32>(i) < count; i += kGridThreads) {
        const UInt32 cell = cells[i], to = shifts[digit_of(cell, plan.shift, plan.bits)] + static_cast<UInt32>(i);
        plan.sorted_cells[to] = cell;
        plan.sorted_numbers[to] = numbers[i];
    }
}

// ---- the end ----

// The first index in [begin, end) of a cell that is not below this one; `end` if there is none.
std::int64_t lower_bound(const UInt32* cells, std::int64_t begin, std::int64_t end, std::int64_t cell) {
    while (begin < end) {
        const std::int64_t middle = begin + (end - begin) / 2;
        if (cells[middle] < cell)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

void find_starts(const GridEndPlan& plan) {
    WEFT_SHARED std::int64_t ends[2];
    const std::int64_t starts = plan.cell_count + 1;
    for (std::int64_t first = block_index() * kGridCells; first < starts; first += blocks() * kGridCells) {
        const std::int64_t end = least(starts, first + kGridCells);
        if (block_thread() == 0) ends[0] = lower_bound(plan.cells, 0, plan.count, first);
        if (block_thread() == kWarp) ends[1] = lower_bound(plan.cells, 0, plan.count, end);
        __syncthreads();
        for (std::int64_t cell = first + block_thread(); cell < end; cell += kGridThreads)
            plan.starts[cell] = static_cast<Int32>(lower_bound(plan.cells, ends[0], ends[1], cell));
        __syncthreads();
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_grid_cells_f16(GridCellsPlan plan) { find_cells<Scalar::f16>(plan); }
[[clang::device_kernel]] void weft_grid_cells_f32(GridCellsPlan plan) { find_cells<Scalar::f32>(plan); }
[[clang::device_kernel]] void weft_grid_cells_f64(GridCellsPlan plan) { find_cells<Scalar::f64>(plan); }

// Launched with a block for each tile.
[[clang::device_kernel]] void weft_grid_sort(GridSortPlan plan) { sort_tile(plan); }

// Launches after this one see the grid.
[[clang::device_kernel]] void weft_grid_end(GridEndPlan plan) {
    find_starts(plan);
    if (plan.groups)
        for (std::int64_t i = thread_index(); i < plan.count; i += threads())
            plan.sorted_groups[i] = *reinterpret_cast<const Int32*>(plan.groups + plan.numbers[i] * plan.group_stride);
    if (thread_index() != 0) return;
    *plan.described = plan.description;
    if (plan.emptied) *plan.emptied = HashGridFields();
}

}  // extern "C"

}  // namespace weft::devlib
