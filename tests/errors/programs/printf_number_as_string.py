import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.printf('%s', n)  # error: '%s' needs a string known at compile time, not int32
