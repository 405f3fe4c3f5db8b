// NanoVDB grids as bytes in the host's memory (the format: devlib/spatial/nanovdb.h): their description, and the check
// that makes them safe to use.
//
// check_grid() reads every offset and every count of a grid. Afterwards a lookup at any place stays inside of the
// bytes, regardless of their origin. Values and boxes are not checked: any bits are valid numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devlib/spatial/nanovdb.h"
#include "devlib/spatial/voxels.h"

namespace weft::runtime::nanovdb {

using namespace devlib::nanovdb;
using Bytes = std::span<const std::byte>;

template <typename T>
T read(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <typename T>
void write(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof value);
}

struct Coordinate {
    std::int32_t i = 0, j = 0, k = 0;
    friend bool operator==(const Coordinate&, const Coordinate&) = default;
};

// An array of bytes that travels with a grid.
struct BlindData {
    std::string name;
    std::uint64_t offset = 0;  // of the first byte in the grid
    std::uint64_t value_count = 0;
    std::uint32_t value_size = 0;
    GridType type = GridType::unknown;
};

struct GridDescription {
    GridType type = GridType::unknown;
    GridClass grid_class = GridClass::unknown;
    std::uint32_t version = 0;
    std::string name;
    std::uint32_t index = 0, count = 1;  // position among the consecutive grids of a buffer, and their number
    std::uint64_t size_bytes = 0;
    // index space -> world: x -> matrix x + translation, row by row
    std::array<double, 9> matrix{}, inverse{};
    std::array<double, 3> translation{}, voxel_size{};
    std::array<std::uint32_t, 3> nodes{};  // leaves, lower, upper
    std::uint64_t active_voxels = 0;
    std::uint64_t value_count = 0;  // of index grids: length of the external array, the background included
    std::uint64_t root_end = 0;     // offset of the byte after the root's tiles
    std::vector<BlindData> blind_data;
};

// "float", "Vec3f", "OnIndex": as the format's own tools print it.
std::string_view type_name(GridType type);

// Describes the first grid in `bytes`. Throws UsageError in the name of `api`, with the fault and its place, if it is
// no usable grid.
GridDescription check_grid(Bytes bytes, std::string_view api);

// Throws UsageError if a checked grid has a checksum that is wrong. Until version 32.6.0 the header's sum extends to
// the end of the root, and the nodes' sum depends on the computer that wrote it: that one is not compared.
void check_checksum(Bytes grid, const GridDescription& description, std::string_view api);

// A leaf of a checked grid.
struct LeafLocation {
    std::uint64_t offset = 0;  // in the grid, in bytes
    Coordinate origin;         // of its first voxel
};
// All leaves, in the order of the tree.
std::vector<LeafLocation> leaves_of(Bytes grid);

// The checksum over the bytes as they are. Precondition: a checked grid of a version after 32.6.0.
std::uint64_t checksum_of(Bytes grid);
inline constexpr std::uint64_t kNoChecksum = ~0ull;

}  // namespace weft::runtime::nanovdb
