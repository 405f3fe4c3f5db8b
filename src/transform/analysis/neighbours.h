// Additions of one thread to elements that lie next to each other: u.grad[i, j - 1] += a; u.grad[i, j] += b; ...
//
// Neighbouring lanes add to overlapping vectors there. One after the other, each would have to wait until the stores of
// the one before have reached memory; put together in registers they are one vector and a few elements.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

struct Neighbours {
    struct Member {
        const ir::Operation* add;
        std::int64_t offset;  // of its last index, from that of the others
    };
    std::vector<Member> members;  // in program order; nothing between them looks at their memory
};

// Of the atomic additions for which `is_plain` holds, those that belong together: in one region, with equal indices but
// for the last, which is one value give or take constants, or clamped to a border.
std::vector<Neighbours> find_neighbours(const ir::Function& kernel,
                                        const std::function<bool(const ir::Operation&)>& is_plain);

}  // namespace weft::transform
