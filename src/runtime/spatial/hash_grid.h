// Hash grids: points sorted by their cell of space, so that the neighbours of a place are found quickly.
//
// Space is divided into cubes of one width. Cube coordinates wrap around the grid's extents, so that a grid of any size
// covers all of space; cubes that map to the same cell share it. Points of a cell are in the order of their numbers for
// any number of threads, so that sums in kernels are reproducible.
//
// Points with groups are also in a second grid, in which each group's cells are moved by a distance of its own
// (builtins/hash_grid.cpp queries both).
//
// A device whose memory the host cannot reach builds the same grid by its own kernels (device_grid.h).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/array.h"

namespace weft::runtime::spatial {

class DeviceGrid;

// Read by kernels: types/objects.cpp has the same fields.
struct HashGridDescriptor {
    ArrayView starts;  // int32: the first index in `points` of each cell, and the end of the last cell
    ArrayView points;  // int32: the numbers of the points, sorted by cell
    ArrayView groups;  // int32, of the points in that order; null if there are none
    double inverse_width = 0.0;
    std::uint64_t grouped = 0;  // address of the other grid
    std::int32_t dims[3] = {0, 0, 0};
    std::int32_t count = 0;
    // Not for kernels: neighbours in memory are rarely neighbours in space.
    bool in_no_order = false;
};

class HashGrid {
public:
    // `scalar` is that of the points: f16, f32 or f64. Throws UsageError for dimensions below 1 and grids of more than
    // 2^31 - 2 cells.
    HashGrid(const std::int64_t (&dims)[3], Scalar scalar, Device& device);
    ~HashGrid();
    HashGrid(const HashGrid&) = delete;
    HashGrid& operator=(const HashGrid&) = delete;

    // Replaces the grid's points, with cells of this width. A point with a NaN coordinate is in some cell. Throws
    // UsageError if the arrays do not fit, and for widths that are not above 0. On a device with geometry of its own,
    // the build is in the order of the current stream.
    void build(const Array& points, double width, const Array* groups);
    // Allocates memory for so many points, for later calls of build().
    void reserve(std::int64_t points, bool with_groups);

    std::uint64_t id() const { return id_; }
    Device& device() const { return device_; }
    Scalar scalar() const { return scalar_; }
    const std::int64_t (&dims() const)[3] { return dims_; }
    // The present descriptors, whose arrays are in the device's memory: of all points, and of those with groups. Waits
    // for the current stream. Precondition: a ReadLease, as long as the arrays are read.
    std::pair<HashGridDescriptor, HashGridDescriptor> describe() const;

private:
    void build_on_host(const Array& points, double width, const Array* groups);

    std::int64_t dims_[3];
    Scalar scalar_;
    Device& device_;
    std::uint64_t id_;
    std::mutex device_mutex_;                  // of builds
    std::shared_ptr<DeviceGrid> device_grid_;  // null for the host's memory
};

// ---- for launches ----

// False if the points are so few that they fit a cache in any order.
bool may_need_order(std::int64_t count);

// Three-component vectors of floats in the elements of an array in the host's memory.
struct PositionField {
    const ArrayView& array;
    std::int64_t offset;  // in an element, in bytes
    Scalar scalar;
};
// The grid whose cell order a launch with one thread for each of these places should follow, else null: it has as many
// points, which are in no spatial order, and these places are adjacent where its points are. To be called, and the
// result used, during a ReadLease. Former objects count (handles.h).
const HashGridDescriptor* order_for(std::uint64_t id, std::int64_t count, const PositionField& places);

// Gathers the elements of a one-dimensional array in the order of `numbers`, packed.
void sort_elements(const ArrayView& from, std::int64_t element_bytes, const ArrayView& numbers, void* to);
// Adds such elements, of `count` floats each, to the gradient of the array from which they were gathered: f32 or f64.
void add_sorted(const void* from, Scalar scalar, std::int64_t count, const ArrayView& numbers, const ArrayView& to);

}  // namespace weft::runtime::spatial
