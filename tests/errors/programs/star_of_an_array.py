import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = wp.max(*x)  # error: '*' needs a tuple, not array[float32]
