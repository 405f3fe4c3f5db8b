import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    f = lambda v: v  # noqa: E731
    if n > 0:
        f = lambda v: 2.0 * v  # noqa: E731
    x[0] = f(x[0])  # error: 'f' stands for a lambda on one path here and for something else on another
