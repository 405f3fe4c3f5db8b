// The choices of semantic analysis.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::sema {

// Blocks of several lanes that one thread of the machine runs.
struct Blocks {
    int lanes = 1;  // of a block
    // The coordinate of wp.tid() that is the lane; those before it are the block's. -1: see `threads`.
    int lane_axis = -1;
    // The extents of a launch of threads: blocks are threads that follow each other, row-major.
    std::vector<std::int64_t> threads = {};

    bool operator==(const Blocks&) const = default;
};

struct Options {
    int max_unroll = 16;  // static loops up to this many iterations are unrolled
    bool debug = false;   // keep asserts
    Blocks blocks = {};
};

}  // namespace weft::sema
