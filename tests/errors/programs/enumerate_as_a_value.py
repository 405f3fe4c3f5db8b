import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = enumerate((1, 2))  # error: enumerate() can only be the iterable of a for loop in kernels
