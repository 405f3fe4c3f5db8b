import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    half = lambda v: 0.5 * v  # noqa: E731  # note: the function
    x[0] = half(x[0], 2.0)  # error: 'lambda' takes 1 argument, got 2
