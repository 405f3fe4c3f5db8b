import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    raise ValueError('a')  # error: 'raise' is not supported in kernels
