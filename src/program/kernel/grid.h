// The extents of a launch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/executable.h"
#include "transform/passes/launch_rank.h"
#include "types/layout.h"

namespace weft::program {

using runtime::Grid;

// Fits `dims` (1 to 4 extents) to machine code for launches of `tid_rank` dimensions. Missing trailing axes have extent
// 1, and a kernel that does not ask for coordinates counts all threads. Throws UsageError for negative extents, for
// products past 2^63, and for an extent that an int32 coordinate cannot count. More axes than the code takes are an
// error too, unless their extents are 1.
Grid make_grid(std::span<const std::int64_t> dims, int tid_rank, std::string_view kernel_name);

// The rank that the code of a launch with these extents is compiled for (transform::fit_to_launch()).
inline int launch_rank(std::span<const std::int64_t> dims) {
    std::size_t rank = dims.size();
    while (rank > 1 && dims[rank - 1] == 1) --rank;
    return static_cast<int>(rank);
}

}  // namespace weft::program
