#include <algorithm>
#include <limits>

#include "devlib/cuda/primitives.h"
#include "runtime/array_copies.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda/primitives.h"
#include "runtime/cuda/primitives/workplace.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

devlib::MatrixView matrix_view(const Array& array) {
    const std::int64_t* const strides = array.view.strides;
    return {static_cast<char*>(array.view.data), array.ndim == 3 ? strides[0] : 0, strides[array.ndim - 2],
            strides[array.ndim - 1]};
}

// Whether both views have the same elements at the same addresses.
bool same_elements(const Array& a, const Array& b) {
    return a.view.data == b.view.data && std::ranges::equal(a.shape(), b.shape()) &&
           std::ranges::equal(a.strides(), b.strides());
}

}  // namespace

void CudaPrimitives::matmul(const Array& a, const Array& b, const Array* c, const Array& d, double alpha, double beta) {
    if (d.size() == 0) return;
    const Workplace at(d);
    const bool reads_c = beta != 0.0;
    const bool direct = !overlap(d, a) && !overlap(d, b) && !(reads_c && overlap(d, *c) && !same_elements(d, *c));
    const Array result = direct ? d : empty(d.dtype, d.shape(), *d.device);
    const Scalar scalar = d.dtype.scalar();
    devlib::MatmulPlan plan{};
    plan.a = matrix_view(a);
    plan.b = matrix_view(b);
    if (reads_c) plan.c = matrix_view(*c);
    plan.d = matrix_view(result);
    plan.batches = d.ndim == 3 ? d.view.shape[0] : 1;
    plan.rows = d.view.shape[d.ndim - 2];
    plan.columns = d.view.shape[d.ndim - 1];
    plan.inner = a.view.shape[a.ndim - 1];
    plan.alpha = alpha;
    plan.beta = beta;
    plan.scalar = static_cast<std::int32_t>(scalar);
    const auto tiles = [](std::int64_t extent) { return (extent + devlib::kTile - 1) / devlib::kTile; };
    const std::int64_t blocks = std::min<std::int64_t>(plan.batches * tiles(plan.rows) * tiles(plan.columns),
                                                       std::numeric_limits<std::int32_t>::max());
    const OwnKernel kernel{k_matmul_ptx, scalar == Scalar::f64 ? "weft_matmul_f64" : "weft_matmul_f32"};
    launch_own(kernel, at.device, at.stream, static_cast<unsigned>(blocks), devlib::kTile * devlib::kTile, &plan);
    if (!direct) copy(d, result);
}

}  // namespace weft::runtime
