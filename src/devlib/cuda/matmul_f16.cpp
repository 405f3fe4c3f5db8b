// d = alpha * (a @ b) + beta * c for f16 by tensor cores: sums in single precision, rounded once.
#pragma clang force_cuda_host_device begin
#include "devlib/cuda/matmul_tensor.h"

namespace weft::devlib {

extern "C" {

WEFT_KERNEL(256, 2) void weft_matmul_f16_128x128_kk(MatmulPlan plan) {
    TensorTiling<_Float16, false, false, false, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_f16_64x64_kk(MatmulPlan plan) {
    TensorTiling<_Float16, false, false, false, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 2) void weft_matmul_f16_128x128_kn(MatmulPlan plan) {
    TensorTiling<_Float16, false, false, true, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_f16_64x64_kn(MatmulPlan plan) {
    TensorTiling<_Float16, false, false, true, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 2) void weft_matmul_f16_128x128_mk(MatmulPlan plan) {
    TensorTiling<_Float16, false, true, false, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_f16_64x64_mk(MatmulPlan plan) {
    TensorTiling<_Float16, false, true, false, 64, 64, 2, 2>::multiply(plan);
}
WEFT_KERNEL(256, 2) void weft_matmul_f16_128x128_mn(MatmulPlan plan) {
    TensorTiling<_Float16, false, true, true, 128, 128, 4, 2>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_f16_64x64_mn(MatmulPlan plan) {
    TensorTiling<_Float16, false, true, true, 64, 64, 2, 2>::multiply(plan);
}

}  // extern "C"

}  // namespace weft::devlib
#pragma clang force_cuda_host_device end
