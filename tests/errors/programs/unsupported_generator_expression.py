import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = sum(a for a in range(3))  # error: a generator expression is not supported in kernels
