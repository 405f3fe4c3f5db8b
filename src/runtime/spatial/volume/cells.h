// A shortcut to the leaves of a grid: a dense table over a box of cells, of 8^3 voxels each, that has the address of
// each cell's leaf. One load replaces the way down the tree, and kernels need no branches: where there is no leaf, the
// table has the address of one whose voxels all have the tile's value or the background.
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
    // Of a checked grid, whose bytes lie at `address`. Nothing where the table would be large beside the grid, where
    // the grid has values outside of its leaves' box or many different ones of tiles, and for leaves that cannot stand
    // for one value.
    static std::unique_ptr<CellTable> make(Bytes grid, const GridDescription& description, unsigned char* address);

    devlib::VolumeCells view() const;

private:
    struct Box {
        std::int64_t low[3], count[3];  // cells, with a border of one cell of background around
    };

    CellTable(Bytes grid, GridType type, unsigned char* address, const Box& box);

    bool fill(const std::vector<LeafPlace>& leaves);
    // A leaf with this value; null where there are too many.
    const unsigned char* leaf_of(const std::byte* value);
    bool set(Coordinate corner, std::int64_t cells, const std::byte* value);
    std::size_t index(std::int64_t i, std::int64_t j, std::int64_t k) const;

    Bytes grid_;
    GridType type_;
    unsigned char* address_;
    Box box_;
    std::vector<const unsigned char*> cells_;
    std::map<std::string, std::unique_ptr<std::byte[]>> constants_;  // by the bytes of their value
};

}  // namespace weft::runtime::nanovdb
