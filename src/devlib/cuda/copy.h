// What a copy between strided arrays is on a CUDA device: a plan of runtime/copy_plan.h in units of 1, 2, 4 or 8 bytes.
#pragma once

namespace weft::devlib {

inline constexpr int kMostCopyAxes = 4;

struct StridedCopy {
    struct Axis {
        __INT64_TYPE__ count, to, from;  // strides in bytes
    };
    char* to;
    const char* from;
    __INT64_TYPE__ units;      // of an element
    __INT64_TYPE__ count;      // units in all
    __INT32_TYPE__ ndim;       // at least 1
    Axis axes[kMostCopyAxes];  // outermost first
};

}  // namespace weft::devlib
