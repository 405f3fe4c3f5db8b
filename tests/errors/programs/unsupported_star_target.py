import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    a, *rest = (1, 2, 3)  # error: '*' in an assignment is not supported in kernels
