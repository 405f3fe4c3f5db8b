import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    x[0] = ValueError("a")  # error: the exception class ValueError cannot be called
