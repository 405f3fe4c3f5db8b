import warp as wp


@wp.kernel
def kernel(x: wp.array2d[float]):
    wp.dense_gemm(x, x)  # error: wp.dense_gemm(): dense matrices in kernels are not there yet, see docs/names.md#
