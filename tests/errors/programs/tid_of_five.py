import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    a, b, c, d, e = wp.tid()  # error: wp.tid() gives 1 to 4 coordinates, not 5
