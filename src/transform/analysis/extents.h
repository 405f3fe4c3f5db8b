// Extents of arrays are int32 in kernels. Code for arrays with more elements along a dimension (codegen::Options::huge)
// keeps numbers that come from extents in 64 bits as well. It does so until the kernel stores them, passes them on, or
// the like.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// An operation that takes only 32 bits of a number that comes from an extent.
struct NarrowExtent {
    int parameter = -1;  // the parameter that is the array or the struct around it; -1: not known
    int axis = -1;       // of the parameter's array; -1: not known
    Span span;
};
std::vector<NarrowExtent> narrow_extents(const ir::Module& module);

}  // namespace weft::transform
