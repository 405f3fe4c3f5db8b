// An array as kernels read it, also inside of structs: an address, extents, strides.
#pragma once

#include <cstdint>

namespace weft {

// Arrays have up to four dimensions, on top of those of their elements.
inline constexpr int kMaxDims = 4;

// Strides are in bytes and may be negative or 0.
struct ArrayView {
    void* data = nullptr;
    void* grad = nullptr;
    std::int64_t shape[kMaxDims] = {0, 0, 0, 0};
    std::int64_t strides[kMaxDims] = {0, 0, 0, 0};
};
static_assert(sizeof(ArrayView) == 80 && alignof(ArrayView) == 8);

}  // namespace weft
