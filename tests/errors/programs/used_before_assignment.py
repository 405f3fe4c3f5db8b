import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = y  # error: 'y' is used before it is assigned
    y = 1.0
