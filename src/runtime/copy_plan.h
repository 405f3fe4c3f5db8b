// Which bytes go where, when one array is copied to another: a plan is made from shapes, strides and addresses, and
// touches no memory. A device carries it out (Device::copy).
//
// A plan is a loop nest over a destination and a source with strides; a fill has a source whose strides are all 0. Axes
// that lie end to end in both are one, and the axis with the smallest strides in the destination is the last.
#pragma once

#include <cstdint>

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
    std::int64_t element = 0;  // bytes that stay together
    int ndim = 0;              // at least 1
    Axis axes[kMaxDims];       // outermost first
    // The two share bytes. Then each is one line without gaps, and the bytes that were there before are copied.
    bool overlapping = false;
    // Whose memory the two are: of the device that carries it out, or of the host.
    enum class Sides { inside, from_host, to_host } sides = Sides::inside;

    std::int64_t size_bytes() const {
        std::int64_t total = element;
        for (int i = 0; i < ndim; ++i) total *= axes[i].count;
        return total;
    }
    // Whether each byte of the destination belongs to one element only, which is not so where it is broadcast.
    bool writes_once() const;
};

// Precondition: arrays of one shape with elements of one size, which are not empty.
CopyPlan plan_copy(const Array& destination, const Array& source);
CopyPlan plan_fill(const Array& destination, const void* element);
// `size_bytes` bytes in a line.
CopyPlan plan_line(void* to, const void* from, std::int64_t size_bytes);

}  // namespace weft::runtime
