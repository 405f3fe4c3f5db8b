import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    print(f'{n:.2q}')  # error: the format '.2q' is not one that kernels know
