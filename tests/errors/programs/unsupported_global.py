import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    global zz  # error: 'global' is not supported in kernels
