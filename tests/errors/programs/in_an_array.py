import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = n in x  # error: 'in' needs a tuple or a vector on its right in kernels, not array[float32]
