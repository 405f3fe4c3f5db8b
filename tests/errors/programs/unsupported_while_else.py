import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    while n < 1:  # error: 'else' of a loop is not supported in kernels
        pass
    else:
        pass
