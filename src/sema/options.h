// The choices of semantic analysis.
#pragma once

namespace weft::sema {

struct Options {
    int max_unroll = 16;  // static loops up to this many iterations are unrolled
    bool debug = false;   // keep asserts
};

}  // namespace weft::sema
