// d = alpha * (a @ b) + beta * c in double precision, by tiles of three sizes. Each has a kernel that reads both
// operands in vectors, and one ("_any") that also reads single numbers.
#pragma clang force_cuda_host_device begin
#include "devlib/cuda/matmul_tiles.h"

namespace weft::devlib {

extern "C" {

WEFT_KERNEL(256, 2) void weft_matmul_f64_128x64(MatmulPlan plan) {
    Tiling<double, true, 128, 64, 8, 8, 4>::multiply(plan);
}
WEFT_KERNEL(256, 2) void weft_matmul_f64_128x64_any(MatmulPlan plan) {
    Tiling<double, false, 128, 64, 8, 8, 4>::multiply(plan);
}

WEFT_KERNEL(128, 3) void weft_matmul_f64_64x64(MatmulPlan plan) {
    Tiling<double, true, 64, 64, 8, 8, 4>::multiply(plan);
}
WEFT_KERNEL(128, 3) void weft_matmul_f64_64x64_any(MatmulPlan plan) {
    Tiling<double, false, 64, 64, 8, 8, 4>::multiply(plan);
}

WEFT_KERNEL(64, 8) void weft_matmul_f64_32x32(MatmulPlan plan) {
    Tiling<double, true, 32, 32, 16, 4, 4>::multiply(plan);
}
WEFT_KERNEL(64, 8) void weft_matmul_f64_32x32_any(MatmulPlan plan) {
    Tiling<double, false, 32, 32, 16, 4, 4>::multiply(plan);
}

}  // extern "C"

}  // namespace weft::devlib
#pragma clang force_cuda_host_device end
