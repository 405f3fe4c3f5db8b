import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.printf('%d', n, n)  # error: the format has no conversion for this value
