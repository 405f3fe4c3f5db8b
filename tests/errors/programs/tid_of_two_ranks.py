import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    a, c = wp.tid()  # error: wp.tid() gives 2 coordinates here and 1 coordinate elsewhere in the same kernel
