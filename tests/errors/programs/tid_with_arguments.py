import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.tid(1)  # error: wp.tid() takes no arguments
