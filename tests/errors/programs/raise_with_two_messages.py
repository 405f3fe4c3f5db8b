import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    raise ValueError("a", n)  # error: an exception takes one message in kernels
