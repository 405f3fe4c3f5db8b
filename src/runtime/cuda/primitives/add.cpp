#include <algorithm>
#include <vector>

#include "devlib/cuda/primitives.h"
#include "runtime/copy_plan.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives/primitives.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

void CudaPrimitives::add(const Array& into, const Array& what) {
    if (into.size() == 0) return;
    const Workplace at(into);
    const std::vector<FloatsOfElement> floats = floats_of(into.dtype);
    const CopyPlan copy = plan_copy(into, what);
    devlib::AddPlan plan{};
    plan.to = static_cast<char*>(copy.to);
    plan.from = static_cast<const char*>(copy.from);
    plan.count = copy.size_bytes() / copy.element;
    plan.ndim = copy.ndim;
    for (int i = 0; i < copy.ndim; ++i) plan.axes[i] = {copy.axes[i].count, copy.axes[i].to, copy.axes[i].from};
    const OwnKernel kernel{k_add_ptx, "weft_add"};
    for (std::size_t first = 0; first < floats.size(); first += devlib::kMostFloats) {
        plan.kinds = static_cast<std::int32_t>(std::min<std::size_t>(floats.size() - first, devlib::kMostFloats));
        for (int i = 0; i < plan.kinds; ++i) {
            const FloatsOfElement& each = floats[first + static_cast<std::size_t>(i)];
            plan.floats[i] = {each.offset, each.count, info(each.scalar).bytes(),
                              static_cast<std::int32_t>(each.scalar)};
        }
        if (copy.writes_once())
            launch_own(kernel, at.device, at.stream, plan.count, plan);
        else  // one thread adds all that belongs to an element
            launch_own(kernel, at.device, at.stream, 1, 1, &plan);
    }
}

}  // namespace weft::runtime
