import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[...] = 1.0  # error: ... is not supported in kernels
