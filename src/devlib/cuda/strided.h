// Pairs of elements of two strided arrays on a CUDA device: the device's form of a plan of runtime/copy_plan.h.
#pragma once

#include <cstdint>

namespace weft::devlib {

inline constexpr int kMostAxes = 4;

struct Strided {
    struct Axis {
        std::int64_t count, to, from;  // strides in bytes
    };
    struct Pair {
        char* to;
        const char* from;
    };

    // From the innermost axis on; the remaining quotient is the coordinate of the outermost.
    Pair pair(std::int64_t index) const {
        Pair found = first;
        for (int i = ndim; i-- > 1;) {
            const std::int64_t next = index / axes[i].count;
            step(found, axes[i], index - next * axes[i].count);
            index = next;
        }
        step(found, axes[0], index);
        return found;
    }

    Pair first;
    std::int64_t count;    // pairs
    std::int32_t ndim;     // at least 1
    Axis axes[kMostAxes];  // outermost first

private:
    static void step(Pair& pair, const Axis& axis, std::int64_t coordinate) {
        pair.to += coordinate * axis.to;
        pair.from += coordinate * axis.from;
    }
};

// A copy in units of 1, 2, 4 or 8 bytes.
struct StridedCopy {
    Strided elements;
    std::int64_t units;  // per element
};

}  // namespace weft::devlib
