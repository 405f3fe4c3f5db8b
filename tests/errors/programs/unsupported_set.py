import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = {1, 2}  # error: a set is not supported in kernels
