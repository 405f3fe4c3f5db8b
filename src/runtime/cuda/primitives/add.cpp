#include <algorithm>
#include <vector>

#include "devlib/cuda/primitives.h"
#include "runtime/copy_plan.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

void CudaPrimitives::add(const Array& into, const Array& what) {
    if (into.size() == 0) return;
    const Workplace at(into);
    const std::vector<FloatsOfElement> floats = floats_of(into.dtype);
    const CopyPlan copy = plan_copy(into, what);
    devlib::AddPlan plan{};
    plan.elements = strided(copy);
    const OwnKernel kernel{k_add_ptx, "weft_add"};
    for (std::size_t first = 0; first < floats.size(); first += devlib::kMostFloats) {
        plan.kinds = static_cast<std::int32_t>(std::min<std::size_t>(floats.size() - first, devlib::kMostFloats));
        for (int i = 0; i < plan.kinds; ++i) {
            const FloatsOfElement& each = floats[first + static_cast<std::size_t>(i)];
            plan.floats[i] = {each.offset, each.count, info(each.scalar).bytes(),
                              static_cast<std::int32_t>(each.scalar)};
        }
        launch_strided(kernel, at.device, at.stream, copy, plan.elements.count, plan);
    }
}

}  // namespace weft::runtime
