import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = isinstance(n, int)  # error: kernels cannot use 'isinstance', which is the Python function 'isinstance'
