import warp as wp


@wp.func
def limited(x: float, *, most: float = 1.0):  # note: the function is limited(x: float32, *, most: float32 = ...)
    return wp.min(x, most)


@wp.kernel
def kernel(x: wp.array[float]):
    i = wp.tid()
    x[i] = limited(x[i], 2.0)  # error: 'limited' takes 1 argument by position, got 2  # help: most=...
