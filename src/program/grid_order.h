// Threads that run in the order of a hash grid.
//
// A loop over neighbours reads what lies near the thread's point in space. Where the points are in no order in memory,
// each thread reads memory that no other has read lately, and waits for most of it. So such a launch runs code whose
// threads take their coordinates from the grid (transform::follow_grid_order()): points of a cell, and cells side by
// side, one after the other. The order is a permutation of all coordinates. Which grid it is from, and whether points
// have moved since, matters to the time that the launch takes and to nothing else. What is read of neighbours is copied
// into that order first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "program/grid.h"
#include "program/lowered.h"
#include "runtime/array.h"
#include "runtime/spatial/handles.h"
#include "runtime/spatial/hash_grid.h"

namespace weft::program {

class GridOrder {
public:
    // The one that a launch with these arguments had better follow, if there is one.
    GridOrder(const KernelFacts& kernel, runtime::Device& device, const std::byte* block, const Grid& grid);
    explicit operator bool() const { return grid_ != nullptr; }

    // Shows it to code that follows it (Variant::grid_order), with copies of what this reads of neighbours. To be kept
    // until that has run. False where the arguments have less elements than there are neighbours.
    bool show(const KernelFacts& kernel, std::byte* block);

private:
    bool show_copy(const KernelFacts& kernel, std::size_t parameter, const ArrayView& of, std::byte* block);

    runtime::Device& device_;
    std::optional<runtime::spatial::Reading> reading_;
    std::uint64_t id_ = 0;
    const runtime::spatial::HashGridDescriptor* grid_ = nullptr;
    std::vector<runtime::BufferPtr> copies_;
    std::optional<runtime::spatial::Finding> finding_;  // the code finds this grid, of which the copies are
};

}  // namespace weft::program
