#include <algorithm>
#include <bit>
#include <utility>

#include "devlib/cuda/hash_grid.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/geometry.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/radix_sort.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

using devlib::kSortThreads, devlib::kSortTile;

constexpr OwnKernel kCellsF16{k_hash_grid_ptx, "weft_grid_cells_f16"},
    kCellsF32{k_hash_grid_ptx, "weft_grid_cells_f32"}, kCellsF64{k_hash_grid_ptx, "weft_grid_cells_f64"};
constexpr OwnKernel kEnd{k_hash_grid_ptx, "weft_grid_end"};

// The order of points by their cells.
RadixSort sort_of(std::int64_t points, std::int64_t cells) {
    RadixSort sort(Scalar::u32, 0,
                   std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(cells - 1)))));
    sort.set_count(points);
    return sort;
}

// Words of the workspace before that of the sort: the cells, twice, and the numbers.
constexpr std::int64_t kWordsOfPoint = 3;

unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
    return static_cast<unsigned>(std::clamp<std::int64_t>((items + per_block - 1) / per_block, 1, 1 << 20));
}

}  // namespace

std::int64_t CudaGeometry::grid_workspace(std::int64_t points, std::int64_t cells) const {
    return 4 * kWordsOfPoint * points + sort_of(points, cells).workspace_bytes();
}

void CudaGeometry::build_grid(const spatial::GridBuild& build) {
    Stream& stream = current_stream(device_);
    const devlib::HashGridFields& description = build.description;
    const std::int64_t count = description.count,
                       cells = std::int64_t{description.dims[0]} * description.dims[1] * description.dims[2];
    RadixSort sort = sort_of(count, cells);
    auto* const words = static_cast<std::uint32_t*>(build.workspace);
    auto *first_cells = words, *second_cells = words + count;
    auto *first = reinterpret_cast<std::int32_t*>(words + 2 * count),
         *second = static_cast<std::int32_t*>(description.points.data);
    if (sort.ends_in_first()) std::swap(first, second);
    if (count > 0) {
        sort.set_buffers({first_cells, second_cells, first, second, 4, /*makes_positions=*/true});
        sort.begin(words + kWordsOfPoint * count, device_, stream);
        const devlib::GridCellsPlan plan{static_cast<const char*>(build.points),
                                         build.point_stride,
                                         static_cast<const char*>(build.groups),
                                         build.group_stride,
                                         description.inverse_width,
                                         {description.dims[0], description.dims[1], description.dims[2]},
                                         first_cells,
                                         sort.plan().digits,
                                         count,
                                         sort.plan().passes};
        const OwnKernel kernel = build.scalar == Scalar::f64   ? kCellsF64
                                 : build.scalar == Scalar::f32 ? kCellsF32
                                                               : kCellsF16;
        launch_own(kernel, device_, stream, blocks_for(count, kSortTile), kSortThreads, &plan);
        sort.sort();
    }
    const devlib::GridEndPlan end{sort.ends_in_first() ? first_cells : second_cells,
                                  static_cast<const std::int32_t*>(description.points.data),
                                  static_cast<const char*>(build.groups),
                                  build.group_stride,
                                  static_cast<std::int32_t*>(description.groups.data),
                                  static_cast<std::int32_t*>(description.starts.data),
                                  count,
                                  cells,
                                  description,
                                  build.described,
                                  build.emptied};
    const unsigned blocks =
        std::max(blocks_for(cells + 1, devlib::kGridCells), build.groups ? blocks_for(count, kSortTile) : 1);
    launch_own(kEnd, device_, stream, blocks, kSortThreads, &end);
}

}  // namespace weft::runtime
