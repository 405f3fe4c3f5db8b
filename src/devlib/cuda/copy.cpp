// Kernels of the runtime, compiled to PTX when Weft is built (cmake/cuda_kernels.cmake): copies between arrays that are
// not contiguous. Neighbouring threads copy neighbouring units.
#include "devlib/cuda/strided.h"
#include "devlib/cuda/threads.h"

namespace weft::devlib {

namespace {

template <typename Unit>
void copy(const StridedCopy& plan) {
    const std::int64_t units = plan.elements.count * plan.units;
    for (std::int64_t at = thread_index(); at < units; at += threads()) {
        const std::int64_t element = plan.units == 1 ? at : at / plan.units, unit = at - element * plan.units;
        const Strided::Pair pair = plan.elements.pair(element);
        reinterpret_cast<Unit*>(pair.to)[unit] = reinterpret_cast<const Unit*>(pair.from)[unit];
    }
}

}  // namespace

extern "C" {

[[clang::device_kernel]] void weft_copy_1(StridedCopy plan) { copy<__UINT8_TYPE__>(plan); }
[[clang::device_kernel]] void weft_copy_2(StridedCopy plan) { copy<__UINT16_TYPE__>(plan); }
[[clang::device_kernel]] void weft_copy_4(StridedCopy plan) { copy<__UINT32_TYPE__>(plan); }
[[clang::device_kernel]] void weft_copy_8(StridedCopy plan) { copy<__UINT64_TYPE__>(plan); }

}  // extern "C"

}  // namespace weft::devlib
