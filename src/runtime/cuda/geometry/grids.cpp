#include <algorithm>
#include <bit>

#include "devlib/cuda/hash_grid.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/geometry.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

constexpr OwnKernel kCellsF16{k_hash_grid_ptx, "weft_grid_cells_f16"},
    kCellsF32{k_hash_grid_ptx, "weft_grid_cells_f32"}, kCellsF64{k_hash_grid_ptx, "weft_grid_cells_f64"};
constexpr OwnKernel kSort{k_hash_grid_ptx, "weft_grid_sort"}, kEnd{k_hash_grid_ptx, "weft_grid_end"};

using devlib::kGridDigits, devlib::kGridTile;

// Passes over the digits of a cell's number.
struct Passes {
    explicit Passes(std::int64_t cells) {
        const int all = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(cells - 1))));
        count = (all + devlib::kGridMostBits - 1) / devlib::kGridMostBits;
        bits = (all + count - 1) / count;
    }
    int count, bits;
};

// The parts of the workspace, in words of 4 bytes.
struct Workspace {
    Workspace(std::int64_t points, const Passes& passes)
        : tiles((points + kGridTile - 1) / kGridTile),
          other_cells(points),
          numbers(2 * points),
          digits(3 * points),
          next_tiles(digits + passes.count * kGridDigits),
          progress(next_tiles + passes.count),
          end(progress + passes.count * (tiles << passes.bits)) {}

    std::int64_t tiles;
    // Where each begins, after the cells; the bytes from `digits` on are zero before a build.
    std::int64_t other_cells, numbers, digits, next_tiles, progress, end;
};

template <typename E>
E* at(void* memory, std::int64_t word) {
    return reinterpret_cast<E*>(static_cast<std::uint32_t*>(memory) + word);
}

unsigned blocks_for(std::int64_t items, std::int64_t per_block) {
    return static_cast<unsigned>(std::clamp<std::int64_t>((items + per_block - 1) / per_block, 1, 1 << 20));
}

}  // namespace

std::int64_t CudaGeometry::grid_workspace(std::int64_t points, std::int64_t cells) const {
    return 4 * Workspace(points, Passes(cells)).end;
}

void CudaGeometry::build_grid(const spatial::GridBuild& build) {
    Stream& stream = current_stream(device_);
    const devlib::HashGridFields& description = build.description;
    const std::int64_t count = description.count,
                       cells = std::int64_t{description.dims[0]} * description.dims[1] * description.dims[2];
    const Passes passes(cells);
    const Workspace parts(count, passes);
    void* const memory = build.workspace;
    auto* own_cells = at<std::uint32_t>(memory, 0);
    auto* other_cells = at<std::uint32_t>(memory, parts.other_cells);
    auto* const sorted = static_cast<std::int32_t*>(description.points.data);
    if (count > 0) {
        device_.clear(at<std::byte>(memory, parts.digits), 4 * (parts.end - parts.digits), stream);
        const devlib::GridCellsPlan plan{static_cast<const char*>(build.points),
                                         build.point_stride,
                                         static_cast<const char*>(build.groups),
                                         build.group_stride,
                                         description.inverse_width,
                                         {description.dims[0], description.dims[1], description.dims[2]},
                                         own_cells,
                                         at<std::uint32_t>(memory, parts.digits),
                                         count,
                                         passes.count,
                                         passes.bits};
        const OwnKernel kernel = build.scalar == Scalar::f64   ? kCellsF64
                                 : build.scalar == Scalar::f32 ? kCellsF32
                                                               : kCellsF16;
        launch_own(kernel, device_, stream, blocks_for(count, kGridTile), devlib::kGridThreads, &plan);
        devlib::GridSortPlan sort{};
        sort.count = count, sort.bits = passes.bits;
        for (int pass = 0; pass < passes.count; ++pass) {
            sort.cells = own_cells, sort.sorted_cells = other_cells;
            sort.numbers = sort.sorted_numbers;
            sort.sorted_numbers = (passes.count - pass) % 2 == 1 ? sorted : at<std::int32_t>(memory, parts.numbers);
            sort.digits = at<std::uint32_t>(memory, parts.digits + pass * kGridDigits);
            sort.next_tile = at<std::uint32_t>(memory, parts.next_tiles + pass);
            sort.progress = at<std::uint32_t>(memory, parts.progress + pass * (parts.tiles << passes.bits));
            sort.shift = pass * passes.bits;
            launch_own(kSort, device_, stream, static_cast<unsigned>(parts.tiles), devlib::kGridThreads, &sort);
            std::swap(own_cells, other_cells);
        }
    }
    const devlib::GridEndPlan end{own_cells,
                                  sorted,
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
        std::max(blocks_for(cells + 1, devlib::kGridCells), build.groups ? blocks_for(count, kGridTile) : 1);
    launch_own(kEnd, device_, stream, blocks, devlib::kGridThreads, &end);
}

}  // namespace weft::runtime
