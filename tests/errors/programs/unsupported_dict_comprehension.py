import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = {a: a for a in range(3)}  # error: a dict comprehension is not supported in kernels
