// Threads in the order of a hash grid, and copies of arrays in that order (follow_grid_order.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// A copy, as ir::ImplicitParameter::of encodes it. `of` counts the arrays among a kernel's own parameters, and in
// structs that are parameters. `grid` counts the u64 numbers in the same way, one of which is the grid's id.
struct SortedCopy {
    int of;         // array
    int grid = -1;  // -1: the grid that gives the order
    // Whether the copy has a gradient, of zeros at first. Its contents belong to the gradient of the array.
    bool has_gradient = false;

    static SortedCopy from(int implicit_of) {
        return {implicit_of % kMost, implicit_of / kMost % kMost - 1, implicit_of >= kMost * kMost};
    }
    int implicit_of() const { return of + (grid + 1) * kMost + (has_gradient ? kMost * kMost : 0); }
    static constexpr int kMost = 1000;  // of each; arrays and ids with a higher number are not copied
};

// Makes each thread of a kernel take its coordinate from an extra parameter, ImplicitParameter::Kind::order. `sorts`:
// loads of neighbours read copies, ImplicitParameter::Kind::sorted, in the order of each grid. order_shows()
// (analysis/grid_order_conditions.h) says how results depend on the order. Only kernels with one coordinate change.
void follow_grid_order(ir::Function& kernel, bool sorts);

// The number of grids that a kernel queries around its threads' own points (own_queries()).
std::size_t grids_asked(const ir::Function& kernel);

// Receives each part of the parameters that is no struct: its type, and the fields that lead to it.
using Leaf = std::function<void(Type type, int parameter, const std::vector<std::int64_t>& fields)>;
void for_each_leaf(std::span<const Type> parameters, const Leaf& visit);

}  // namespace weft::transform
