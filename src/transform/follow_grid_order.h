// Copies that stand in the order of a hash grid (follow_grid_order.cpp): what ir::ImplicitParameter::of says of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// Numbers count the arrays of a kernel's own parameters, and those in structs that are parameters; and in the same way
// the numbers of 64 bits without a sign, one of which names the grid.
struct SortedCopy {
    int of;         // array
    int grid = -1;  // -1: the one that gives the order
    // It has a gradient, of zeros at first. What is added to that belongs to the gradient of the array.
    bool has_gradient = false;

    static SortedCopy from(int implicit_of) {
        return {implicit_of % kMost, implicit_of / kMost % kMost - 1, implicit_of >= kMost * kMost};
    }
    int implicit_of() const { return of + (grid + 1) * kMost + (has_gradient ? kMost * kMost : 0); }
    static constexpr int kMost = 1000;  // of each; what has a higher number is not copied
};

// How many grids a kernel asks for neighbours of its threads' own places (own_queries()).
std::size_t grids_asked(const ir::Function& kernel);

// What is no struct in a parameter, field by field: its type, and the fields that lead there.
using Leaf = std::function<void(Type type, int parameter, const std::vector<std::int64_t>& fields)>;
void for_each_leaf(std::span<const Type> parameters, const Leaf& visit);

}  // namespace weft::transform
