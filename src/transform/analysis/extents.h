// Extents of arrays are int32 in kernels. Code for arrays with more elements along a dimension keeps what comes from
// extents in 64 bits as well (codegen::Options::huge), up to where the kernel stores it, passes it on, or the like.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// A place that takes 32 bits of a number that comes from an extent.
struct NarrowExtent {
    int parameter = -1;  // whose array it is, also within a struct; -1: not known
    int axis = -1;       // of the parameter's array; -1: not known
    Span span;
};
std::vector<NarrowExtent> narrow_extents(const ir::Module& module);

}  // namespace weft::transform
