// d = alpha * (a @ b) + beta * c for f32 by tensor cores, with factors rounded to TF32, or ("x3") to two such numbers.
#pragma clang force_cuda_host_device begin
#include "devlib/cuda/matmul_tensor.h"

namespace weft::devlib {

extern "C" {

WEFT_KERNEL(256, 2) void weft_matmul_tf32_128x128_kk(MatmulPlan plan) {
    TensorTiling<float, false, false, false, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_tf32_64x64_kk(MatmulPlan plan) {
    TensorTiling<float, false, false, false, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 2) void weft_matmul_tf32_128x128_kn(MatmulPlan plan) {
    TensorTiling<float, false, false, true, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_tf32_64x64_kn(MatmulPlan plan) {
    TensorTiling<float, false, false, true, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 2) void weft_matmul_tf32_128x128_mk(MatmulPlan plan) {
    TensorTiling<float, false, true, false, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_tf32_64x64_mk(MatmulPlan plan) {
    TensorTiling<float, false, true, false, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 2) void weft_matmul_tf32_128x128_mn(MatmulPlan plan) {
    TensorTiling<float, false, true, true, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_tf32_64x64_mn(MatmulPlan plan) {
    TensorTiling<float, false, true, true, 64, 64, 2, 2>::multiply(plan);
}

WEFT_KERNEL(256, 1) void weft_matmul_tf32x3_128x128_kk(MatmulPlan plan) {
    TensorTiling<float, true, false, false, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 3) void weft_matmul_tf32x3_64x64_kk(MatmulPlan plan) {
    TensorTiling<float, true, false, false, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 1) void weft_matmul_tf32x3_128x128_kn(MatmulPlan plan) {
    TensorTiling<float, true, false, true, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 3) void weft_matmul_tf32x3_64x64_kn(MatmulPlan plan) {
    TensorTiling<float, true, false, true, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 1) void weft_matmul_tf32x3_128x128_mk(MatmulPlan plan) {
    TensorTiling<float, true, true, false, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 3) void weft_matmul_tf32x3_64x64_mk(MatmulPlan plan) {
    TensorTiling<float, true, true, false, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 1) void weft_matmul_tf32x3_128x128_mn(MatmulPlan plan) {
    TensorTiling<float, true, true, true, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 3) void weft_matmul_tf32x3_64x64_mn(MatmulPlan plan) {
    TensorTiling<float, true, true, true, 64, 64, 2, 2>::multiply(plan);
}

}  // extern "C"

}  // namespace weft::devlib
#pragma clang force_cuda_host_device end
