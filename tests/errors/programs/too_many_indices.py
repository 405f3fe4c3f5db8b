import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i, i] = 1.0  # error: 2 indices for array[float32], which has 1 dimension
