import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = not 'a'  # error: a condition must be a bool or a number, not the string
