// Hash grids: points ordered by the cell of space that they lie in, so that those near a place are found quickly.
//
// Space is cut into cubes of one width. A cube is counted around the ends of the grid along each axis, so that a grid
// of any size covers all of space; cubes that fall onto one cell share it. Points of a cell stand in the order of their
// numbers, whatever the number of threads: what kernels sum up is the same each time.
//
// Where points have groups, they stand in a second grid too, in which each group's cells are moved by a distance of its
// own (builtins/hash_grid.cpp walks over both).
#pragma once

#include <cstdint>

#include "runtime/array.h"

namespace weft::runtime::spatial {

// As kernels read it: types/objects.cpp has the same fields.
struct HashGridDescriptor {
    ArrayView starts;  // int32: where each cell begins among the points, and where the last one ends
    ArrayView points;  // int32: the numbers of the points, by cells
    ArrayView groups;  // int32, of the points in that order; null where there are none
    double inverse_width = 0.0;
    std::uint64_t grouped = 0;  // address of the other grid
    std::int32_t dims[3] = {0, 0, 0};
    std::int32_t count = 0;
    // Not for kernels: neighbours in memory are hardly ever neighbours in space.
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

    // Orders these points, in cells of this width; later queries find them and no others. A point with a coordinate
    // that is NaN is in some cell. Throws UsageError where the arrays do not fit, and for widths that are not above 0.
    void build(const Array& points, double width, const Array* groups);
    // Memory for so many points, so that build() finds it.
    void reserve(std::int64_t points, bool with_groups);

    std::uint64_t id() const { return id_; }
    Device& device() const { return device_; }
    Scalar scalar() const { return scalar_; }
    const std::int64_t (&dims() const)[3] { return dims_; }

private:
    std::int64_t dims_[3];
    Scalar scalar_;
    Device& device_;
    std::uint64_t id_;
};

// ---- for launches ----

// False for so few points that they lie in a cache in any order.
bool may_need_order(std::int64_t count);

// Vectors of three floats in the elements of an array in the host's memory.
struct Places {
    const ArrayView& array;
    std::int64_t offset;  // in an element
    Scalar scalar;
};
// The grid whose points by cells a launch with a thread for each of these places had better follow: it has as many
// points, which are in no order, and these places lie side by side where its points do. Null else. To be called, and
// used, within a Reading. Former objects count (handles.h).
const HashGridDescriptor* order_for(std::uint64_t id, std::int64_t count, const Places& places);

// The elements of an array of one dimension in the order of these numbers, packed.
void sort_elements(const ArrayView& from, std::int64_t element_bytes, const ArrayView& numbers, void* to);
// Adds such elements, of `count` floats each, to the gradient of the array that they were sorted from: f32 or f64.
void add_sorted(const void* from, Scalar scalar, std::int64_t count, const ArrayView& numbers, const ArrayView& to);

}  // namespace weft::runtime::spatial
