#include "runtime/copy_plan.h"

#include <cstdlib>

#include "runtime/array.h"

namespace weft::runtime {
namespace {

CopyPlan simplified(const Array& destination, const void* from, const std::int64_t* from_strides) {
    using Axis = CopyPlan::Axis;
    CopyPlan plan;
    plan.to = destination.view.data;
    plan.from = from;
    plan.element = destination.dtype.size_bytes();
    Axis axes[kMaxDims];
    int n = 0;
    for (int i = 0; i < destination.ndim; ++i) {
        if (destination.view.shape[i] == 1) continue;
        const Axis added{destination.view.shape[i], destination.view.strides[i], from_strides[i]};
        // Sorted so that writes follow the order of memory.
        int at = n++;
        for (; at > 0 && std::abs(axes[at - 1].to) < std::abs(added.to); --at) axes[at] = axes[at - 1];
        axes[at] = added;
    }
    for (int i = 0; i < n; ++i) {
        if (plan.ndim > 0) {
            Axis& outer = plan.axes[plan.ndim - 1];
            if (outer.to == axes[i].count * axes[i].to && outer.from == axes[i].count * axes[i].from) {
                outer = {outer.count * axes[i].count, axes[i].to, axes[i].from};
                continue;
            }
        }
        plan.axes[plan.ndim++] = axes[i];
    }
    if (plan.ndim == 0) plan.axes[plan.ndim++] = {1, plan.element, plan.element};
    return plan;
}

}  // namespace

std::pair<const std::byte*, const std::byte*> CopyPlan::bytes_of(const void* first, std::int64_t Axis::* stride) const {
    const auto* begin = static_cast<const std::byte*>(first);
    const std::byte* end = begin + element;
    for (int i = 0; i < ndim; ++i) {
        const std::int64_t reach = axes[i].*stride * (axes[i].count - 1);
        (reach < 0 ? begin : end) += reach;
    }
    return {begin, end};
}

bool CopyPlan::writes_once() const {
    std::int64_t span = element;  // bytes from the first to the last element of the axes so far, from the innermost on
    for (int i = ndim; i-- > 0;) {
        const std::int64_t stride = std::abs(axes[i].to);
        if (axes[i].count > 1 && stride < span) return false;
        span += stride * (axes[i].count - 1);
    }
    return true;
}

CopyPlan plan_copy(const Array& destination, const Array& source) {
    return simplified(destination, source.view.data, source.view.strides);
}

CopyPlan plan_fill(const Array& destination, const void* element) {
    const std::int64_t repeat[kMaxDims] = {0, 0, 0, 0};
    return simplified(destination, element, repeat);
}

CopyPlan plan_line(void* to, const void* from, std::int64_t size_bytes) {
    CopyPlan plan;
    plan.to = to;
    plan.from = from;
    plan.element = 1;
    plan.ndim = 1;
    plan.axes[0] = {size_bytes, 1, 1};
    return plan;
}

}  // namespace weft::runtime
