// The input of the builder of trees (topology.h): the boxes of the items, and the options.
#pragma once

#include <cstdint>

#include "devlib/spatial/layout.h"

namespace weft::runtime::spatial {

enum class TreeMethod { sah, linear, median };

struct TreeOptions {
    TreeMethod method = TreeMethod::sah;
    int leaf_size = devlib::kWidth;  // most items of a leaf; more than kWidth counts as kWidth
};

// An item, as the builder reads it. Precondition: the box is finite and not empty.
template <typename T>
struct alignas(4 * sizeof(T)) BuildItem {
    T lower[3];
    std::int32_t item;
    T upper[3];
    std::int32_t group;
};

}  // namespace weft::runtime::spatial
