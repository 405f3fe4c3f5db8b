// Additions of one thread to elements that lie next to each other: u.grad[i, j - 1] += a; u.grad[i, j] += b; ...
//
// Neighbouring lanes then add to overlapping vectors. Done separately, each addition would wait until the stores of the
// previous one have reached memory. Combined in registers they are one vector and a few elements.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

struct AdjacentAdditions {
    struct Member {
        const ir::Operation* add;
        std::int64_t offset;  // of the last index, from the base that all members share
    };
    std::vector<Member> members;  // in program order; no operation between them accesses their memory
};

// Groups the atomic additions for which `is_plain` holds. Members of a group are in one region, and their indices are
// equal except for the last. The last ones are one value plus or minus constants, or that clamped to a border.
std::vector<AdjacentAdditions> find_adjacent_additions(const ir::Function& kernel,
                                                       const std::function<bool(const ir::Operation&)>& is_plain);

}  // namespace weft::transform
