import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    f = lambda a: a  # error: a lambda is not supported in kernels
