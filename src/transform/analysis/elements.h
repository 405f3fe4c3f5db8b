// Which elements accesses of a kernel are to, as far as the coordinates of the thread say it: what threads have to
// themselves (uncontended.h, threads.h).
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "ir/ir.h"

namespace weft::transform {

// A number between factor times a coordinate plus `low` and plus `high`; without a coordinate between these.
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

// What is known of each index, counted from the start of that array. Without any where the access is to a part of it
// that begins elsewhere.
using Indices = std::vector<std::optional<Affine>>;
Indices indices_of(const ir::Operation& access);
// What both accesses have at their indices, as one.
void join(Indices& all, const Indices& more);
// Whether threads that differ in a coordinate differ in these indices: `rank` coordinates in all.
bool tells_threads_apart(const Indices& indices, int rank);

}  // namespace weft::transform
