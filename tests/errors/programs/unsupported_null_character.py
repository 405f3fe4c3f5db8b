import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print('a\0b')  # error: a string with a null character in it is not supported in kernels
