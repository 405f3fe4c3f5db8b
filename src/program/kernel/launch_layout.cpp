#include "program/kernel/launch_layout.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "binary/cuda_abi.h"
#include "runtime/buffer.h"
#include "support/error.h"

namespace weft::program {

// Axes in order of their strides: each step must lead past all that the axes before reach.
bool shows_twice(const ArrayView& view, const BlockArray& block_array) {
    std::array<std::pair<std::int64_t, std::int64_t>, kMaxDims> axes;  // (stride, extent), sorted
    std::size_t count = 0;
    for (int axis = 0; axis < block_array.ndim; ++axis) {
        if (view.shape[axis] <= 1) continue;
        const std::pair added{std::abs(view.strides[axis]), view.shape[axis]};
        std::size_t at = count++;
        for (; at > 0 && added < axes[at - 1]; --at) axes[at] = axes[at - 1];
        axes[at] = added;
    }
    std::int64_t reach = block_array.element_bytes;
    for (std::size_t i = 0; i < count; ++i) {
        const auto [stride, extent] = axes[i];
        if (stride < reach) return true;
        reach += stride * (extent - 1);
    }
    return false;
}

namespace {

// Whether the innermost dimension of some array is not packed.
bool has_gaps(const KernelFacts& kernel, const std::byte* block) {
    for (const BlockArray& block_array : kernel.arrays) {
        const int last = block_array.ndim - 1;
        if (!block_array.is_parameter || last < 0) continue;
        const ArrayView& view = view_at(block, block_array.offset);
        if (view.strides[last] != block_array.element_bytes && view.shape[last] > 1) return true;
    }
    return false;
}

// Whether an element is not aligned for the accesses of several numbers in code for GPUs.
bool is_misaligned(const KernelFacts& kernel, const std::byte* block) {
    for (const BlockArray& block_array : kernel.arrays) {
        const std::int64_t alignment = cuda_alignment(block_array.element_bytes);
        if (!block_array.is_parameter) continue;
        const ArrayView& view = view_at(block, block_array.offset);
        auto bits = reinterpret_cast<std::intptr_t>(view.data) | reinterpret_cast<std::intptr_t>(view.grad);
        for (int axis = 0; axis < block_array.ndim; ++axis)
            if (view.shape[axis] > 1) bits |= view.strides[axis];
        if ((bits & (alignment - 1)) != 0) return true;
    }
    return false;
}

// Views in memory count as huge as soon as any memory has held a huge one: a launch cannot tell which it will reach.
bool is_huge(const KernelFacts& kernel, const std::byte* block) {
    if (kernel.reads_views && runtime::References::any_is_huge()) return true;
    std::int64_t bits = 0;
    for (const BlockArray& block_array : kernel.arrays)
        for (int axis = 0; axis < block_array.ndim; ++axis) bits |= view_at(block, block_array.offset).shape[axis];
    return bits > std::numeric_limits<std::int32_t>::max();
}

bool repeats_elements(const KernelFacts& kernel, const std::byte* block) {
    const std::vector<int>& uncontended = kernel.uncontended_parameters;
    return !uncontended.empty() && std::ranges::any_of(kernel.arrays, [&](const BlockArray& block_array) {
        return std::ranges::find(uncontended, block_array.parameter) != uncontended.end() &&
               shows_twice(view_at(block, block_array.offset), block_array);
    });
}

// Memory that a launch may touch.
struct Touched {
    const std::byte* begin;
    const std::byte* end;
    bool changes;
};

// Whether two of them show the same bytes and one of the two changes them. Sorts them.
bool any_meet(std::span<Touched> touched) {
    std::ranges::sort(touched, {}, &Touched::begin);
    // The end of all ranges so far, and of those that are changed.
    const std::byte *end = nullptr, *changed_end = nullptr;
    for (const Touched& one : touched) {
        if (one.begin < (one.changes ? end : changed_end)) return true;
        end = std::max(end, one.end);
        if (one.changes) changed_end = std::max(changed_end, one.end);
    }
    return false;
}

// The same, if the ranges that are changed are the first `changed`. Slower for many of these and faster for few.
// Without branches, which would be unpredictable: addresses lie in any order.
bool any_pair_meets(std::span<const Touched> touched, std::size_t changed) {
    for (std::size_t i = 0; i < changed; ++i) {
        const std::byte *const begin = touched[i].begin, *const end = touched[i].end;
        unsigned met = 0;
        for (const Touched& other : touched.subspan(i + 1))
            met |= static_cast<unsigned>(begin < other.end) & static_cast<unsigned>(other.begin < end);
        if (met != 0) return true;
    }
    return false;
}

// Whether memory that the launch changes is shown by another array or, with gradients, by another gradient.
template <bool kWithGradients>
bool has_shared_memory(const KernelFacts& kernel, const std::byte* block, std::span<Touched> room) {
    std::size_t count = 0, changed = 0;
    const auto add = [&](const ArrayView& view, const BlockArray& block_array, bool changes) {
        const Extent memory = extent(view, block_array);
        if (memory.begin == memory.end) return;
        std::size_t at = count++;
        if (changes) {
            room[at] = room[changed];
            at = changed++;
        }
        room[at] = {memory.begin, memory.end, changes};
    };
    for (const BlockArray& block_array : kernel.arrays) {
        const auto parameter = static_cast<std::size_t>(block_array.parameter);
        if (parameter >= kernel.effects.size())
            break;  // implicit parameters: copies, which are apart, and data that is only read
        const ArrayView& view = view_at(block, block_array.offset);
        add(view, block_array, kernel.effects[parameter].writes);
        if (!kWithGradients || !view.grad) continue;
        if (shows_twice(view, block_array)) return true;
        ArrayView of_gradient = view;
        of_gradient.data = view.grad;
        add(of_gradient, block_array, true);
    }
    constexpr std::size_t kFewPairs = 200;
    const std::span<Touched> touched = room.first(count);
    return changed * count <= kFewPairs ? any_pair_meets(touched, changed) : any_meet(touched);
}

template <bool kWithGradients>
bool has_shared_memory(const KernelFacts& kernel, const std::byte* block) {
    constexpr std::size_t kFew = 64;  // so few need no allocation
    const std::size_t most = kernel.arrays.size() * (kWithGradients ? 2 : 1);
    if (most < 2) return false;
    if (most <= kFew) {
        Touched few[kFew];  // uninitialised on purpose
        return has_shared_memory<kWithGradients>(kernel, block, few);
    }
    std::vector<Touched> many(most);
    return has_shared_memory<kWithGradients>(kernel, block, many);
}

}  // namespace

bool gradients_overlap(const KernelFacts& kernel, const std::byte* block) {
    return has_shared_memory<true>(kernel, block);
}

LaunchLayout launch_layout(const KernelFacts& kernel, const std::byte* block, bool with_gradients, bool on_gpu) {
    return {.dense = !has_gaps(kernel, block) && !(on_gpu && is_misaligned(kernel, block)),
            .noalias = with_gradients ? !gradients_overlap(kernel, block)
                                      : kernel.written.empty() || !has_shared_memory<false>(kernel, block),
            .distinct = !repeats_elements(kernel, block),
            .huge = is_huge(kernel, block)};
}

std::optional<CutExtent> cut_extent(const KernelFacts& kernel, const std::byte* block) {
    for (const transform::NarrowExtent& narrow : kernel.narrow_extents) {
        for (const BlockArray& block_array : kernel.arrays) {
            if (narrow.parameter >= 0 && block_array.parameter != narrow.parameter) continue;
            if (narrow.parameter < 0 && block_array.holds_arrays)
                if (const std::int64_t within =
                        runtime::References::huge_extent_around(view_at(block, block_array.offset).data))
                    return CutExtent{block_array.parameter, -1, within, narrow.span};
            for (int axis = 0; axis < block_array.ndim; ++axis) {
                const std::int64_t extent = view_at(block, block_array.offset).shape[axis];
                const bool is_meant = narrow.axis < 0 || !block_array.is_parameter || axis == narrow.axis;
                if (is_meant && extent > std::numeric_limits<std::int32_t>::max())
                    return CutExtent{block_array.parameter, axis, extent, narrow.span};
            }
        }
    }
    return std::nullopt;
}

std::string CutExtent::text(const std::string& name) const {
    const std::string count = std::to_string(extent);
    if (axis < 0) return "an array in an element of " + name + " has " + count + " elements along a dimension";
    return name + " has " + count + " elements along dimension " + std::to_string(axis);
}

void require_narrow_extents(const KernelFacts& kernel, const std::byte* block, const std::string& name) {
    const std::optional<CutExtent> cut = cut_extent(kernel, block);
    if (!cut) return;
    throw UsageError("launch()", cut->span,
                     "kernel '" + name + "' takes the extent of an array as an int32, and " +
                         cut->text("parameter " + std::to_string(cut->parameter + 1)),
                     {{Note::Kind::help, "write wp.int64(a.shape[...]), or pass the number as a wp.int64", {}}},
                     ErrorCategory::value);
}

}  // namespace weft::program
