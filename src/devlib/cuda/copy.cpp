// Kernels of the runtime's own, compiled to PTX when Weft is built (cmake/cuda_kernels.cmake): copies between arrays
// that are not lines of bytes. Neighbouring threads copy neighbouring units.
#include "devlib/cuda/copy.h"

namespace weft::devlib {

namespace {

template <typename Unit>
void copy(const StridedCopy& plan) {
    using Index = __INT64_TYPE__;
    const Index block = __nvvm_read_ptx_sreg_ntid_x();
    const Index step = block * __nvvm_read_ptx_sreg_nctaid_x();
    for (Index at = block * __nvvm_read_ptx_sreg_ctaid_x() + __nvvm_read_ptx_sreg_tid_x(); at < plan.count;
         at += step) {
        Index rest = plan.units == 1 ? at : at / plan.units;
        const Index unit = (at - rest * plan.units) * static_cast<Index>(sizeof(Unit));
        char* to = plan.to + unit;
        const char* from = plan.from + unit;
        // The innermost first; what is left is the coordinate of the outermost.
        for (int i = plan.ndim; i-- > 1;) {
            const StridedCopy::Axis& axis = plan.axes[i];
            const Index next = rest / axis.count, coordinate = rest - next * axis.count;
            to += coordinate * axis.to;
            from += coordinate * axis.from;
            rest = next;
        }
        to += rest * plan.axes[0].to;
        from += rest * plan.axes[0].from;
        *reinterpret_cast<Unit*>(to) = *reinterpret_cast<const Unit*>(from);
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
