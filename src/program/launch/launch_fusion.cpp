#include "program/launch/launch_fusion.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

#include "program/kernel/launch_layout.h"

namespace weft::program {

namespace {

// The data of smaller grids is in the cache anyway.
constexpr std::int64_t kLeastThreads = 1 << 16;
// Half of a second-level cache of today; measured (docs/performance.md).
constexpr std::int64_t kPieceBytes = 256 << 10;

// An array argument of a launch.
struct ArrayUse {
    BlockArray block_array;
    const ArrayView& view;
    bool is_written, is_own;
};

ArrayUse given(const FixedLaunch& launch, const BlockArray& block_array) {
    const std::vector<std::int32_t>& own = launch.kernel->description.cpu().own_arrays;
    return {block_array, view_at(launch.block, block_array.offset),
            launch.kernel->effects[static_cast<std::size_t>(block_array.parameter)].writes,
            std::ranges::find(own, block_array.parameter) != own.end()};
}

bool overlap(const ArrayUse& a, const ArrayUse& b) {
    const Extent one = extent(a.view, a.block_array), other = extent(b.view, b.block_array);
    const std::less<> before;
    return one.begin && other.begin && before(one.begin, other.end) && before(other.begin, one.end);
}

bool is_same_array(const ArrayUse& a, const ArrayUse& b) {
    return a.view.data == b.view.data && a.block_array.ndim == b.block_array.ndim &&
           a.block_array.type == b.block_array.type &&
           std::equal(a.view.shape, a.view.shape + a.block_array.ndim, b.view.shape) &&
           std::equal(a.view.strides, a.view.strides + a.block_array.ndim, b.view.strides);
}

bool may_run_apart(const ArrayUse& a, const ArrayUse& b) {
    if (!a.is_written && !b.is_written) return true;
    if (!overlap(a, b)) return true;
    return a.is_own && b.is_own && is_same_array(a, b) && !shows_twice(a.view, a.block_array);
}

bool is_joinable(const FixedLaunch& launch) {
    const CompiledKernel& kernel = *launch.kernel;
    // CpuEntry::can_fuse says that the kernel does nothing else.
    return kernel.description.cpu().can_fuse && kernel.description.sites.empty() &&
           launch.grid->count >= kLeastThreads && !kernel.serial && kernel.private_gradients.empty();
}

}  // namespace

bool may_fuse(const FixedLaunch& launch, std::span<const FixedLaunch> before) {
    if (!is_joinable(launch)) return false;
    for (const FixedLaunch& other : before) {
        if (!is_joinable(other) || other.kernel->tid_rank != launch.kernel->tid_rank ||
            !std::ranges::equal(other.grid->dim, launch.grid->dim))
            return false;
        for (const BlockArray& here : launch.kernel->arrays)
            for (const BlockArray& there : other.kernel->arrays)
                if (!may_run_apart(given(launch, here), given(other, there))) return false;
    }
    return true;
}

std::int64_t fused_piece(std::span<const FixedLaunch> launches) {
    // Bytes that one step of the thread's last coordinate advances in each array, each array counted once.
    std::vector<ArrayUse> seen;
    std::int64_t bytes = 0;
    for (const FixedLaunch& launch : launches) {
        const int axis = launch.kernel->tid_rank - 1;
        for (const BlockArray& block_array : launch.kernel->arrays) {
            const ArrayUse one = given(launch, block_array);
            if (!one.is_own || axis >= block_array.ndim) continue;
            if (std::ranges::any_of(seen, [&](const ArrayUse& other) { return is_same_array(one, other); })) continue;
            seen.push_back(one);
            bytes += std::max(block_array.element_bytes, std::abs(one.view.strides[axis]));
        }
    }
    constexpr std::int64_t kLeast = 1024;
    return std::max(kLeast, kPieceBytes / std::max<std::int64_t>(1, bytes) / kLeast * kLeast);
}

}  // namespace weft::program
