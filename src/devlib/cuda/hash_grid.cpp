// Builds of hash grids; hash_grid.h describes the method.
#include "devlib/cuda/hash_grid.h"

#include "devlib/cuda/numbers.h"
#include "devlib/cuda/sort_places.h"

namespace weft::devlib {

namespace {

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
    WEFT_SHARED UInt32 digits[kGridMostPasses * kDigits];
    const int words = plan.passes * kDigits;
    for (int word = int(block_thread()); word < words; word += kSortThreads) digits[word] = 0;
    __syncthreads();
    for (std::int64_t i = thread_index(); i < plan.count; i += threads()) {
        const UInt32 cell = cell_of<scalar>(plan, i);
        plan.cells[i] = cell;
        for (int pass = 0; pass < plan.passes; ++pass)
            count_one(digits + pass * kDigits + (cell >> pass * kDigitBits & (kDigits - 1)));
    }
    __syncthreads();
    for (int word = int(block_thread()); word < words; word += kSortThreads)
        if (const UInt32 found = digits[word]; found != 0) add_to(plan.digits + word, found);
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
        for (std::int64_t cell = first + block_thread(); cell < end; cell += kSortThreads)
            plan.starts[cell] = static_cast<Int32>(lower_bound(plan.cells, ends[0], ends[1], cell));
        __syncthreads();
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_grid_cells_f16(GridCellsPlan plan) { find_cells<Scalar::f16>(plan); }
[[clang::device_kernel]] void weft_grid_cells_f32(GridCellsPlan plan) { find_cells<Scalar::f32>(plan); }
[[clang::device_kernel]] void weft_grid_cells_f64(GridCellsPlan plan) { find_cells<Scalar::f64>(plan); }

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
