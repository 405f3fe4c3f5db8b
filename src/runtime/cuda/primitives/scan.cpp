#include "devlib/cuda/primitives.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

constexpr OwnKernel kScanSums[] = {{k_scan_ptx, "weft_scan_sums_whole"}, {k_scan_ptx, "weft_scan_sums_real"}};
constexpr OwnKernel kScanCarries[] = {{k_scan_ptx, "weft_scan_carries_whole"}, {k_scan_ptx, "weft_scan_carries_real"}};
constexpr OwnKernel kScanBlocks[] = {{k_scan_ptx, "weft_scan_blocks_whole"}, {k_scan_ptx, "weft_scan_blocks_real"}};

}  // namespace

void CudaPrimitives::scan(const Array& from, const Array& to, bool inclusive) {
    if (from.size() == 0) return;
    const Workplace at(from);
    const Array source = contiguous(from);
    // In place only if both are the same elements; other overlaps need a temporary.
    const bool direct = to.is_contiguous() && (to.view.data == source.view.data || !overlap(to, source));
    const Array result = direct ? to : empty(to.dtype, to.shape(), *to.device);
    const Scalar scalar = from.dtype.scalar();
    const bool is_real = info(scalar).is_float();
    const std::int64_t components = from.dtype.components();
    const std::int64_t blocks = (from.size() + devlib::kScanBlock - 1) / devlib::kScanBlock;
    const CudaMemory carries = at.memory(8 * components * blocks);
    const devlib::ScanPlan plan{static_cast<const char*>(source.view.data),
                                static_cast<char*>(result.view.data),
                                carries.data(),
                                from.size(),
                                components,
                                blocks,
                                info(scalar).bytes(),
                                static_cast<std::int32_t>(scalar),
                                inclusive};
    launch_own(kScanSums[is_real], at.device, at.stream, components * (blocks - 1) * devlib::kScanGroup, plan);
    launch_own(kScanCarries[is_real], at.device, at.stream, components, plan);
    launch_own(kScanBlocks[is_real], at.device, at.stream, components * blocks * kOwnThreads, plan);
    if (!direct) copy(to, result);
}

}  // namespace weft::runtime
