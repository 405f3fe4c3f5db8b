// A shortcut to the leaves of a grid: a dense table over a box of cells, of 8^3 voxels each, with the address of each
// cell's leaf. One load replaces the descent of the tree, and kernels need no branches: cells without a leaf have the
// address of a constant leaf, whose voxels all have the tile's value or the background.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devlib/spatial/volume.h"
#include "runtime/spatial/volume/grid.h"

namespace weft::runtime::nanovdb {

class CellTable {
public:
    // Precondition: the grid was checked; its bytes are at `address`. Null if the table would be large in comparison
    // with the grid, if the grid has values outside of its leaves' box or many different tile values, or if a leaf of
    // its type cannot represent one constant value.
    static std::unique_ptr<CellTable> make(Bytes grid, const GridDescription& description, unsigned char* address);

    devlib::VolumeCells view() const;

    // The table for kernels that cannot read the host's memory: writes constant leaves and cells to `to`, of
    // size_bytes() bytes, for use at the address `at`, by a grid at `grid`.
    std::size_t size_bytes() const;
    devlib::VolumeCells write(std::byte* to, const unsigned char* at, const unsigned char* grid) const;

private:
    struct Box {
        std::int64_t low[3], count[3];  // in cells, with a border of one background cell
    };

    CellTable(Bytes grid, GridType type, unsigned char* address, const Box& box);

    bool fill(const std::vector<LeafLocation>& leaves);
    // A constant leaf with this value; null if there are too many.
    const unsigned char* leaf_of(const std::byte* value);
    bool set(Coordinate corner, std::int64_t cells, const std::byte* value);
    std::size_t index(std::int64_t i, std::int64_t j, std::int64_t k) const;
    devlib::VolumeCells view_of(const unsigned char* const* cells) const;

    Bytes grid_;
    GridType type_;
    unsigned char* address_;
    Box box_;
    std::vector<const unsigned char*> cells_;
    std::map<std::string, std::unique_ptr<std::byte[]>> constants_;  // by the bytes of their value
};

}  // namespace weft::runtime::nanovdb
