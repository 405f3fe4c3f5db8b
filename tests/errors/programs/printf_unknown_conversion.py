import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.printf('%q', n)  # error: '%q' is no conversion of wp.printf()
