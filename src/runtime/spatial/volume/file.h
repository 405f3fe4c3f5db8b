// Files of NanoVDB grids (.nvdb).
//
// A file is a sequence of segments, each with grids that were written together:
//
//     [header 16] [description 176, name] for each grid [grid] ...
//
// A grid is stored as in memory, or compressed by zlib (one block) or blosc (blocks of up to 1 GiB), each block after
// its size. Since version 32.6 a file may also consist of grids alone, as in memory.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/array.h"
#include "runtime/spatial/volume/grid.h"

namespace weft::runtime::nanovdb {

enum class Codec : std::uint16_t { none = 0, zip = 1, blosc = 2 };

// All grids of a file, one after the other, as an array of bytes in the host's memory. Each has been checked
// (check_grid, check_checksum). Its index is set, and its checksum removed, since kernels may change values. Throws
// UsageError in the name of `api` with the fault and its place.
Array read_grids(Bytes file, std::string_view api);

// A file with one checked grid. Throws UsageError if the codec is not available.
std::vector<std::byte> write_grid(Bytes grid, const GridDescription& description, Codec codec, std::string_view api);

}  // namespace weft::runtime::nanovdb
