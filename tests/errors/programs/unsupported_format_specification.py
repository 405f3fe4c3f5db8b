import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print(f'{n:5d}')  # error: a format specification in an f-string is not supported in kernels
