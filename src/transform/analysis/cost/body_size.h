// The size of a body, for code that is emitted more than once.
#pragma once

#include "ir/ir.h"

namespace weft::transform {

// Bodies up to this size are emitted twice to combine contributions: with private copies and without, in leaves.
inline constexpr int kSmallCombiningBody = 100;

struct BodySize {
    int leaves = 0;  // of the results; operations without a result count as one
    bool has_loops = false;
};
BodySize body_size(const ir::Region& region);

}  // namespace weft::transform
