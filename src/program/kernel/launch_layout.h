// Finds the layout in memory of a launch's arrays (options.h), which decides about its code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "program/kernel/transformed.h"

namespace weft::program {

// Whether memory that an adjoint for the arguments in `block` changes, its gradients included, is shown by another
// array or gradient. One gradient may also show it twice. Equal to !launch_layout(kernel, block, true).noalias.
bool gradients_overlap(const KernelFacts& kernel, const std::byte* block);

// The layout of the arguments in `block`. `with_gradients`: of an adjoint, for which gradients that share memory with
// an array or another gradient count as overlapping too.
LaunchLayout launch_layout(const KernelFacts& kernel, const std::byte* block, bool with_gradients = false,
                           bool on_gpu = false);

// An extent of more than 32 bits that code for huge arrays takes as an int32.
struct CutExtent {
    int parameter;
    int axis;  // -1: of an array in an element
    std::int64_t extent;
    Span span;  // the place in the kernel

    // "parameter 1 has 4294967296 elements along dimension 0", for a name of the parameter.
    std::string text(const std::string& name) const;
};
std::optional<CutExtent> cut_extent(const KernelFacts& kernel, const std::byte* block);

// Throws UsageError, at the user's line, if code for huge arrays takes an extent of more than 32 bits as an int32.
void require_narrow_extents(const KernelFacts& kernel, const std::byte* block, const std::string& name);

// Whether some array of the block has no memory: it is None, or empty.
inline bool has_null(std::span<const BlockArray> arrays, const std::byte* block) {
    for (const BlockArray& block_array : arrays)
        if (!view_at(block, block_array.offset).data) return true;
    return false;
}

// Whether different indices may reach one element, as in a broadcast array.
bool shows_twice(const ArrayView& view, const BlockArray& block_array);

// The memory that one array argument touches.
struct Extent {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
};
// Inline, as a launch asks it for each array: a call that returns two words costs 4 ns more.
inline Extent extent(const ArrayView& view, const BlockArray& block_array) {
    auto low = reinterpret_cast<std::intptr_t>(view.data);
    auto high = low;
    for (int axis = 0; axis < block_array.ndim; ++axis) {
        if (view.shape[axis] == 0) return {};
        const std::int64_t reach = (view.shape[axis] - 1) * view.strides[axis];
        (reach < 0 ? low : high) += reach;
    }
    if (view.data == nullptr) return {};
    return {reinterpret_cast<const std::byte*>(low),
            reinterpret_cast<const std::byte*>(high + block_array.element_bytes)};
}

}  // namespace weft::program
