import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _a in range(3):  # error: 'else' of a loop is not supported in kernels
        pass
    else:
        pass
