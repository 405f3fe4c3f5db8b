import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = len(x, x)  # error: len() takes one argument, got 2
