import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    return 3.0  # error: kernels cannot return a value  # help: write it to an array that is an argument of the kernel
