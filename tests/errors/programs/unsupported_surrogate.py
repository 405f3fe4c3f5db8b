import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print('\ud800')  # error: a string that is no valid Unicode is not supported in kernels
