import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print(f'{n!r}')  # error: a conversion (!r, !s, !a) in an f-string is not supported in kernels
