import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.zeros(shape=n, dtype=float)  # error: the shape of wp.zeros() in a kernel must be known at compile time, not int32
