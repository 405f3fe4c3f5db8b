import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    with wp.ScopedTimer('a'):  # error: 'with' is not supported in kernels
        pass
