import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = x[0:2]  # error: slices of arrays and vectors are not supported in kernels
