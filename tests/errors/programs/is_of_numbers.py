import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = n is i  # error: 'is' only compares with None in kernels  # help: use == or !=
