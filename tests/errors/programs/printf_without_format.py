import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.printf(n)  # error: wp.printf() needs a format string first
