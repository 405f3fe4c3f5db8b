import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    x[0] = lambda v: v  # error: is a lambda
