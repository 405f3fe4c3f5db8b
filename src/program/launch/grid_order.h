// Threads that run in the order of a hash grid.
//
// A loop over neighbours reads memory near the thread's point in space. If the points are in no order in memory, each
// thread reads memory that no other has read lately, and waits for most of it. So such a launch runs code whose threads
// take their coordinates from the grid (transform::follow_grid_order()): points of a cell, and cells side by side, one
// after the other. The order is a permutation of all coordinates. The choice of the grid, and whether points have moved
// since it was built, affect only the time of the launch. Data read of neighbours is copied into that order first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "program/kernel/compiled.h"
#include "program/kernel/grid.h"
#include "runtime/array.h"
#include "runtime/handles.h"
#include "runtime/spatial/hash_grid.h"

namespace weft::program {

class GridOrder {
public:
    // Finds the order for a launch with these arguments, if one pays. `has_host`: the caller has the host's lock, which
    // is given up while copies are made.
    GridOrder(const KernelFacts& kernel, runtime::Device& device, const std::byte* block, const Grid& grid,
              bool has_host = true);
    // Whether a launch may ever follow an order, for any contents of its arrays.
    static bool is_possible(const KernelFacts& kernel, const runtime::Device& device, const Grid& grid);
    explicit operator bool() const { return order_.grid != nullptr; }

    // Puts the order, and copies of the neighbours' data in that order, into the arguments of code that follows it
    // (Variant::grid_order). This object must outlive that launch. False if the arguments have fewer elements than
    // there are neighbours, or a grid has many more points than the launch has threads.
    bool show(const KernelFacts& kernel, std::byte* block);
    // After the launch: adds the gradients of copies to those of the arrays of the block.
    void add_up(const std::byte* block);

private:
    struct FoundGrid {
        std::uint64_t id = 0;
        const runtime::spatial::HashGridDescriptor* grid = nullptr;
    };
    struct Copy {
        std::int64_t of;  // offset of the array in the block
        const runtime::spatial::HashGridDescriptor* by;
        runtime::BufferPtr buffer;
    };

    struct Sum {
        std::int64_t of;
        const runtime::spatial::HashGridDescriptor* by;
        Type element;
        runtime::BufferPtr buffer;
    };

    FoundGrid found(std::uint64_t id);
    bool show_copy(const FoundGrid& by, std::int64_t of, std::int64_t element_bytes, const std::byte* block,
                   ArrayView& shown);

    runtime::Device& device_;
    bool has_host_;
    std::optional<runtime::spatial::ReadLease> read_lease_;
    FoundGrid order_;  // gives the order
    std::vector<FoundGrid> found_;
    std::vector<Copy> copies_;
    std::vector<Sum> sums_;
    std::optional<runtime::spatial::SnapshotScope>
        snapshot_scope_;  // the code finds the grids that the copies were made from
};

// A launch that was prepared before and runs without the kernel and the host's lock: of a graph, or of a program of
// another system. `ordered` is the code of the same launch in the order of a grid, or null. This object must outlive
// the launch.
class PreparedLaunch {
public:
    PreparedLaunch(const CompiledKernel& plain, const CompiledKernel* ordered, runtime::Device& device,
                   const std::byte* block, const Grid& grid);
    const CompiledKernel& kernel() const { return *kernel_; }
    const std::byte* block() const { return block_; }

private:
    const CompiledKernel* kernel_;
    const std::byte* block_;
    std::optional<GridOrder> order_;
    std::vector<std::byte> larger_;
};

}  // namespace weft::program
