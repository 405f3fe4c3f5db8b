// into += what, for the floats of any element, along the axes of a copy plan, in which contiguous axes are merged.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/copy_plan.h"
#include "runtime/cpu/copy.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/primitives.h"
#include "runtime/cpu/primitives/numbers.h"

namespace weft::runtime {
namespace {

using Axis = CopyPlan::Axis;

template <typename T>
[[gnu::always_inline]] inline void add_number(T& into, T what) {
    if constexpr (kIsSmallFloat<T>) {
        const float sum = static_cast<float>(into) + static_cast<float>(what);
        into.bits = static_cast<decltype(into.bits)>(small_float::narrow(std::bit_cast<std::uint32_t>(sum), T::format));
    } else {
        into += what;
    }
}

template <typename T>
void add_line(std::byte* to, const std::byte* from, Axis axis, std::int64_t count) {
    const auto numbers = static_cast<std::int64_t>(sizeof(T)) * count;
    if (axis.to == numbers && axis.from == numbers) {
        count *= axis.count;
        axis.count = 1;
    }
    for (std::int64_t i = 0; i < axis.count; ++i) {
        T* const into = reinterpret_cast<T*>(to + i * axis.to);
        const T* const what = reinterpret_cast<const T*>(from + i * axis.from);
        for (std::int64_t k = 0; k < count; ++k) add_number(into[k], what[k]);
    }
}

void add_axes(std::byte* to, const std::byte* from, const Axis* axes, int ndim,
              std::span<const FloatsOfElement> floats) {
    if (ndim > 1) {
        for (std::int64_t i = 0; i < axes[0].count; ++i)
            add_axes(to + i * axes[0].to, from + i * axes[0].from, axes + 1, ndim - 1, floats);
        return;
    }
    for (const FloatsOfElement& each : floats) {
        visit_scalar(each.scalar, [&](auto number) {
            using T = decltype(number);
            if constexpr (kIsReal<T>) add_line<T>(to + each.offset, from + each.offset, axes[0], each.count);
        });
    }
}

// Shared by the threads, which divide the outermost axis.
struct Work {
    const CopyPlan& plan;
    std::span<const FloatsOfElement> floats;
};

void add_part(const Work& work, std::int64_t begin, std::int64_t end) {
    Axis axes[kMaxDims];
    std::copy(work.plan.axes, work.plan.axes + work.plan.ndim, axes);
    axes[0].count = end - begin;
    add_axes(static_cast<std::byte*>(work.plan.to) + begin * axes[0].to,
             static_cast<const std::byte*>(work.plan.from) + begin * axes[0].from, axes, work.plan.ndim, work.floats);
}

}  // namespace

void CpuPrimitives::add(const Array& into, const Array& what) {
    if (into.size() == 0) return;
    const CpuDevice::Access access(*into.device);
    const std::vector<FloatsOfElement> floats = floats_of(into.dtype);
    const CopyPlan plan = plan_copy(into, what);
    const Work work{plan, floats};
    const std::int64_t count = plan.axes[0].count, bytes = plan.size_bytes();
    // Threads must not write to the same element.
    if (bytes < kParallelBytes || !plan.writes_once()) return add_part(work, 0, count);
    constexpr std::int64_t kGrainBytes = 1 << 18;
    parallel_range(
        count, std::max<std::int64_t>(1, kGrainBytes / (bytes / count)),
        [](void* state, std::int64_t begin, std::int64_t end) {
            add_part(*static_cast<const Work*>(state), begin, end);
        },
        const_cast<Work*>(&work));
}

}  // namespace weft::runtime
