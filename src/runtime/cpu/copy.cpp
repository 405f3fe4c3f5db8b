#include "runtime/cpu/copy.h"

#include <algorithm>
#include <cstring>

#include "runtime/cpu/thread_pool.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kGrainBytes = 1 << 18;
constexpr std::int64_t kTile = 32;  // elements along each side of a transposed block

using Axis = CopyPlan::Axis;

std::int64_t magnitude(std::int64_t stride) { return stride < 0 ? -stride : stride; }

// Copies one element; usual sizes are known at compile time.
template <int kSize>
void copy_element(char* to, const char* from, std::int64_t size) {
    std::memcpy(to, from, kSize > 0 ? static_cast<std::size_t>(kSize) : static_cast<std::size_t>(size));
}

template <int kSize>
void copy_line(char* to, const char* from, Axis axis, std::int64_t size) {
    for (std::int64_t i = 0; i < axis.count; ++i) {
        copy_element<kSize>(to, from, size);
        to += axis.to;
        from += axis.from;
    }
}

// Fills a contiguous range with equal elements: the written part is doubled until it covers the range.
void fill_line(char* to, const char* from, std::int64_t count, std::int64_t size) {
    std::int64_t total = count * size;
    if (std::all_of(from, from + size, [&](char byte) { return byte == *from; })) {
        std::memset(to, static_cast<unsigned char>(*from), static_cast<std::size_t>(total));
        return;
    }
    std::memcpy(to, from, static_cast<std::size_t>(size));
    // Doubling inside 4 KiB keeps the source in the first-level cache.
    std::int64_t chunk = size;
    while (chunk < 4096 && 2 * chunk <= total) {
        std::memcpy(to + chunk, to, static_cast<std::size_t>(chunk));
        chunk *= 2;
    }
    for (std::int64_t done = chunk; done < total; done += chunk) {
        std::memcpy(to + done, to, static_cast<std::size_t>(std::min(chunk, total - done)));
    }
}

void run_line(char* to, const char* from, Axis axis, std::int64_t size) {
    if (axis.to == size && axis.from == size) {
        std::memcpy(to, from, static_cast<std::size_t>(axis.count * size));
        return;
    }
    if (axis.to == size && axis.from == 0) {
        fill_line(to, from, axis.count, size);
        return;
    }
    switch (size) {
        case 1:
            return copy_line<1>(to, from, axis, size);
        case 2:
            return copy_line<2>(to, from, axis, size);
        case 4:
            return copy_line<4>(to, from, axis, size);
        case 8:
            return copy_line<8>(to, from, axis, size);
        case 12:
            return copy_line<12>(to, from, axis, size);
        case 16:
            return copy_line<16>(to, from, axis, size);
        case 24:
            return copy_line<24>(to, from, axis, size);
        case 36:
            return copy_line<36>(to, from, axis, size);
        case 64:
            return copy_line<64>(to, from, axis, size);
        default:
            return copy_line<0>(to, from, axis, size);
    }
}

// Copies two axes if the source's smaller stride is that of the outer one (a transpose): in square blocks, so that each
// cache line is used completely while it is cached.
void run_tiled(char* to, const char* from, Axis outer, Axis inner, std::int64_t size) {
    for (std::int64_t i = 0; i < outer.count; i += kTile) {
        for (std::int64_t j = 0; j < inner.count; j += kTile) {
            std::int64_t rows = std::min(kTile, outer.count - i);
            Axis part{std::min(kTile, inner.count - j), inner.to, inner.from};
            for (std::int64_t row = 0; row < rows; ++row) {
                run_line(to + (i + row) * outer.to + j * inner.to, from + (i + row) * outer.from + j * inner.from, part,
                         size);
            }
        }
    }
}

void run_axes(char* to, const char* from, const Axis* axes, int ndim, std::int64_t size) {
    if (ndim == 1) return run_line(to, from, axes[0], size);
    if (ndim == 2 && magnitude(axes[0].from) < magnitude(axes[1].from)) {
        return run_tiled(to, from, axes[0], axes[1], size);
    }
    for (std::int64_t i = 0; i < axes[0].count; ++i) {
        run_axes(to + i * axes[0].to, from + i * axes[0].from, axes + 1, ndim - 1, size);
    }
}

// A plan, and the axis that is divided among threads.
struct Split {
    const CopyPlan& plan;
    int axis;
};

void run_part(const Split& split, std::int64_t begin, std::int64_t end) {
    const CopyPlan& plan = split.plan;
    Axis axes[kMaxDims];
    std::copy(plan.axes, plan.axes + plan.ndim, axes);
    Axis& shared = axes[split.axis];
    shared.count = end - begin;
    run_axes(static_cast<char*>(plan.to) + begin * shared.to, static_cast<const char*>(plan.from) + begin * shared.from,
             axes, plan.ndim, plan.element);
}

}  // namespace

void run_copy(const CopyPlan& plan) {
    const std::int64_t total = plan.size_bytes();
    if (plan.overlapping) {
        std::memmove(plan.to, plan.from, static_cast<std::size_t>(total));
        return;
    }
    int longest = 0;
    for (int i = 0; i < plan.ndim; ++i)
        if (plan.axes[i].count > plan.axes[longest].count) longest = i;
    // The outermost axis gives the longest contiguous runs, unless it is too short to be divided.
    constexpr std::int64_t kEnough = 64;
    Split split{plan, plan.axes[0].count >= kEnough ? 0 : longest};
    std::int64_t count = plan.axes[split.axis].count;
    if (total < kParallelBytes) return run_part(split, 0, count);
    std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes / (total / count));
    parallel_range(
        count, grain,
        [](void* state, std::int64_t begin, std::int64_t end) { run_part(*static_cast<Split*>(state), begin, end); },
        &split);
}

void clear_in_parallel(void* data, std::int64_t size_bytes) {
    parallel_range(
        size_bytes, kGrainBytes,
        [](void* state, std::int64_t begin, std::int64_t end) {
            std::memset(static_cast<char*>(state) + begin, 0, static_cast<std::size_t>(end - begin));
        },
        data);
}

}  // namespace weft::runtime
