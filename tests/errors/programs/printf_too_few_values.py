import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.printf('%d %d', n)  # error: the format asks for more values than the 1 given
