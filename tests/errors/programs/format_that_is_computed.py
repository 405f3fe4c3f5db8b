import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print(f'{x[i]:{n}}')  # error: a computed format in an f-string is not supported in kernels
