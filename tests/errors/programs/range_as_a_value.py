import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = range(3)  # error: range() can only be the iterable of a for loop in kernels
