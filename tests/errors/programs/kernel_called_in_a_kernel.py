import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    kernel(x, n)  # error: kernels cannot use 'kernel', which is a kernel
