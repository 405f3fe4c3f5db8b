// Files of NanoVDB grids (.nvdb).
//
// A file is a row of segments, each with grids that were written together:
//
//     [header 16] [description 176, name] for each grid [grid] ...
//
// A grid is stored as it lies in memory, or compressed by zlib (one block) or blosc (blocks of up to 1 GiB), the size
// of each block before it. Since version 32.6 a file may also be grids alone, as they lie in memory.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/array.h"
#include "runtime/spatial/volume/grid.h"

namespace weft::runtime::nanovdb {

enum class Codec : std::uint16_t { none = 0, zip = 1, blosc = 2 };

// All grids of a file one after the other, as an array of bytes in the host's memory. Each has been checked
// (check_grid, check_checksum), has the number of its place, and no checksum, since kernels may change values.
// Throws UsageError in the name of `api`, naming what is wrong and where.
Array read_grids(Bytes file, std::string_view api);

// A file with one checked grid. Throws UsageError where the codec is not there.
std::vector<std::byte> write_grid(Bytes grid, const GridDescription& description, Codec codec, std::string_view api);

}  // namespace weft::runtime::nanovdb
