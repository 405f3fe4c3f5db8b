#include "runtime/cuda/device.h"
#include "runtime/cuda/geometry.h"
#include "runtime/cuda/own_kernels.h"
#include "runtime/cuda_kernels.h"

namespace weft::runtime {

namespace {

// By the scalar: float32, float64.
constexpr OwnKernel kRefitTriangles[] = {{k_refit_ptx, "weft_refit_triangles_f32"},
                                         {k_refit_ptx, "weft_refit_triangles_f64"}};
constexpr OwnKernel kRefitBoxes[] = {{k_refit_ptx, "weft_refit_boxes_f32"}, {k_refit_ptx, "weft_refit_boxes_f64"}};
constexpr OwnKernel kRefitNodes[] = {{k_refit_ptx, "weft_refit_nodes_f32"}, {k_refit_ptx, "weft_refit_nodes_f64"}};

}  // namespace

void CudaGeometry::write(void* to, const void* from, std::int64_t size_bytes) {
    device_.from_host(to, from, size_bytes, current_stream(device_));
}

void CudaGeometry::refit(const devlib::RefitPlan& plan, Scalar scalar, std::int64_t blocks,
                         std::span<const std::int64_t> level_ends) {
    Stream& stream = current_stream(device_);
    const bool is_double = scalar == Scalar::f64;
    devlib::RefitPlan part = plan;
    part.begin = 0, part.count = blocks;
    launch_own((plan.corners ? kRefitTriangles : kRefitBoxes)[is_double], device_, stream, part.count, part);
    for (const std::int64_t end : level_ends) {
        part.count = end - part.begin;
        launch_own(kRefitNodes[is_double], device_, stream, part.count, part);
        part.begin = end;
    }
}

}  // namespace weft::runtime
