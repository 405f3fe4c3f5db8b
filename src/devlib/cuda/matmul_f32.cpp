// d = alpha * (a @ b) + beta * c in single precision, by tiles of three sizes. Each has a kernel that reads both
// operands in vectors, and one ("_any") that also reads single numbers.
#pragma clang force_cuda_host_device begin
#include "devlib/cuda/matmul_tiles.h"

namespace weft::devlib {

extern "C" {

WEFT_KERNEL(256, 2) void weft_matmul_f32_128x128(MatmulPlan plan) {
    Tiling<float, true, 128, 128, 8, 8, 8>::multiply(plan);
}
WEFT_KERNEL(256, 2) void weft_matmul_f32_128x128_any(MatmulPlan plan) {
    Tiling<float, false, 128, 128, 8, 8, 8>::multiply(plan);
}

WEFT_KERNEL(128, 4) void weft_matmul_f32_64x64(MatmulPlan plan) {
    Tiling<float, true, 64, 64, 8, 8, 4>::multiply(plan);
}
WEFT_KERNEL(128, 4) void weft_matmul_f32_64x64_any(MatmulPlan plan) {
    Tiling<float, false, 64, 64, 8, 8, 4>::multiply(plan);
}

WEFT_KERNEL(64, 8) void weft_matmul_f32_32x32(MatmulPlan plan) {
    Tiling<float, true, 32, 32, 32, 4, 4>::multiply(plan);
}
WEFT_KERNEL(64, 8) void weft_matmul_f32_32x32_any(MatmulPlan plan) {
    Tiling<float, false, 32, 32, 32, 4, 4>::multiply(plan);
}

}  // extern "C"

}  // namespace weft::devlib
#pragma clang force_cuda_host_device end
