// Builds NanoVDB grids from lists of tiles (leaves of 8^3 voxels, all active) or of voxels.
//
// The order of nodes is that of the tree: root tiles by their corners (i, then j, then k), then the entries of their
// nodes. It does not depend on the order of the points, nor on the number of threads. A point may be given several
// times. Grids have the version 32.8 of the format, boxes of active voxels, and no minima and no checksums, since
// kernels write values.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "runtime/array.h"
#include "runtime/spatial/volume/grid.h"

namespace weft::runtime::nanovdb {

inline constexpr std::uint32_t kBuiltVersion = version(32, 8, 0);

// index space -> world: x -> matrix x + translation, row by row. Precondition: the matrix can be inverted.
struct Map {
    std::array<double, 9> matrix{1, 0, 0, 0, 1, 0, 0, 0, 1}, inverse{1, 0, 0, 0, 1, 0, 0, 0, 1};
    std::array<double, 3> translation{};
};
// Empty if the matrix cannot be inverted in floating point.
std::optional<Map> make_map(const std::array<double, 9>& matrix, const std::array<double, 3>& translation);

// The nodes that a grid has.
struct Topology {
    std::vector<Coordinate> corners;    // of the root's tiles, ascending
    std::vector<std::uint64_t> leaves;  // number of the root's tile << 27 | entry in its node << 12 | entry in the next
    std::vector<std::uint64_t> masks;   // of active voxels, eight words for each leaf; empty: all are active
    std::uint64_t lower_nodes = 0, active_voxels = 0;
};
// The leaves that contain these voxels.
Topology tiles_of(std::span<const Coordinate> points);
Topology voxels_of(std::span<const Coordinate> points);
// Counts the lower nodes and voxels of the leaves.
void count_nodes(Topology& topology);

// The number of nodes that there is memory for.
struct Capacity {
    std::uint64_t voxels = 0, leaves = 0, lower = 0, upper = 0;
};
Capacity capacity_of(const Topology& topology);

struct Recipe {
    GridType type = GridType::f32;
    std::vector<std::byte> background;  // a value; empty for index grids
    Map map;
    std::string name;
};

std::uint64_t grid_bytes(GridType type, const Capacity& capacity);
// Writes a grid with these nodes; all values are the background. Index grids with masks get the type on_index.
// Precondition: `to` has grid_bytes() bytes, and the capacity is enough.
void build_grid(std::span<std::byte> to, const Topology& topology, const Recipe& recipe, const Capacity& capacity);

// Writes a dense box of values, in C order; `first` is the coordinate of its first voxel. Values outside of the grid's
// leaves are dropped. `values` has the grid's number of bytes for each voxel.
void write_dense(std::span<std::byte> grid, Bytes values, const std::array<std::int64_t, 3>& extent, Coordinate first);

}  // namespace weft::runtime::nanovdb
