import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = x.numpy()  # error: array[float32] has no attribute 'numpy'
