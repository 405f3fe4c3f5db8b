import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = x[::0]  # error: the step of a slice must not be 0
