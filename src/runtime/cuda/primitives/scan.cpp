#include <cstdint>

#include "devlib/cuda/primitives.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

// Integers need the bits of their sums only, so those of a size share a kernel.
OwnKernel kernel_of(Scalar scalar) {
    const bool is_real = info(scalar).is_float();
    if (info(scalar).bytes() == 4) return {k_scan_ptx, is_real ? "weft_scan_f32" : "weft_scan_u32"};
    if (info(scalar).bytes() == 8) return {k_scan_ptx, is_real ? "weft_scan_f64" : "weft_scan_u64"};
    return {k_scan_ptx, is_real ? "weft_scan_real" : "weft_scan_whole"};
}

}  // namespace

void CudaPrimitives::scan(const Array& from, const Array& to, bool inclusive) {
    if (from.size() == 0) return;
    const Workplace at(from);
    const Array source = contiguous(from);
    // In place only if both are the same elements; other overlaps need a temporary.
    const bool direct = to.is_contiguous() && (to.view.data == source.view.data || !overlap(to, source));
    const Array result = direct ? to : empty(to.dtype, to.shape(), *to.device);
    const Scalar scalar = from.dtype.scalar();
    const std::int64_t components = from.dtype.components();
    const std::int64_t tiles = quotient_up(from.size(), devlib::kScanTile);
    const bool in_pieces = components == 1 && is_aligned(source.view.data) && is_aligned(result.view.data);
    const devlib::ScanPlan plan{static_cast<const char*>(source.view.data),
                                static_cast<char*>(result.view.data),
                                static_cast<std::uint64_t*>(at.state(devlib::scan_state_bytes(components, tiles, 8))),
                                from.size(),
                                components,
                                tiles,
                                info(scalar).bytes(),
                                static_cast<std::int32_t>(scalar),
                                inclusive,
                                in_pieces};
    launch_own(kernel_of(scalar), at.device, at.stream, static_cast<unsigned>(components * tiles), devlib::kScanThreads,
               &plan);
    if (!direct) copy(to, result);
}

}  // namespace weft::runtime
