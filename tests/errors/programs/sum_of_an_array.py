import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = sum(x)  # error: sum() takes a tuple or a vector in kernels, not array[float32]
