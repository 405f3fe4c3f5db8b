// Classifies accesses by how their indices depend on thread coordinates. Two analyses use it: uncontended.h and
// threads.h.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// A number between factor * coordinate + low and factor * coordinate + high; between low and high if axis is -1.
struct Affine {
    int axis = -1;
    std::int64_t factor = 0;
    std::int64_t low = 0, high = 0;
};

// An array that is a parameter, or lies in a struct that is one; or the array of its gradient.
struct Array {
    int parameter;
    bool gradient;
    std::vector<std::int64_t> path;

    bool operator<(const Array& other) const {
        return std::tie(parameter, gradient, path) < std::tie(other.parameter, other.gradient, other.path);
    }
};
// Empty for arrays that come from elsewhere.
std::optional<Array> array_of(const ir::Function& kernel, const ir::Value* value);

// The range of each index, counted from the start of that array. No indices at all if the access is to a part of the
// array that begins elsewhere.
using Indices = std::vector<std::optional<Affine>>;
Indices indices_of(const ir::Operation& access);
// Widens the ranges in `all` to hold those in `more` as well.
void join(Indices& all, const Indices& more);
// Whether threads that differ in any of the `rank` coordinates differ in these indices.
bool tells_threads_apart(const Indices& indices, int rank);

}  // namespace weft::transform
