// Plans of array copies: computed from shapes, strides and addresses, without access to memory. A device executes them
// (Device::copy).
//
// A plan is a loop nest over a destination and a source with strides; a fill has a source whose strides are all 0. Axes
// that are contiguous in both are merged, and the axis with the smallest destination strides is the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "types/layout.h"

namespace weft::runtime {

struct Array;

struct CopyPlan {
    struct Axis {
        std::int64_t count;
        std::int64_t to;  // strides in bytes
        std::int64_t from;
    };

    void* to = nullptr;
    const void* from = nullptr;
    std::int64_t element = 0;  // bytes of an element
    int ndim = 0;              // at least 1
    Axis axes[kMaxDims];       // outermost first
    // The two share bytes. Then each is one contiguous range, and the former bytes of the source are copied.
    bool overlapping = false;
    // The memory of both sides: the executing device's, or the host's on one side.
    enum class Sides { inside, from_host, to_host } sides = Sides::inside;

    std::int64_t size_bytes() const {
        std::int64_t total = element;
        for (int i = 0; i < ndim; ++i) total *= axes[i].count;
        return total;
    }
    // Begin and end of the memory that one side of it touches, whose first element is `first`.
    std::pair<const std::byte*, const std::byte*> bytes_of(const void* first, std::int64_t Axis::* stride) const;
    // Whether each byte of the destination belongs to one element only; false if the destination is broadcast.
    bool writes_once() const;
};

// Precondition: non-empty arrays of one shape, with elements of one size.
CopyPlan plan_copy(const Array& destination, const Array& source);
CopyPlan plan_fill(const Array& destination, const void* element);
// Copies `size_bytes` contiguous bytes.
CopyPlan plan_line(void* to, const void* from, std::int64_t size_bytes);

}  // namespace weft::runtime
