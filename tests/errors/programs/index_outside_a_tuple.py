import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = (1.0, 2.0)[5]  # error: index 5 is outside a tuple of 2 elements
