import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = b'abc'  # error: a literal of the type bytes is not supported in kernels
