import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = enumerate((1, 2))  # error: enumerate() can only be what a for loop runs over in kernels
