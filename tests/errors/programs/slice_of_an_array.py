import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = x[0:4:2]  # error: slices of arrays have no step in kernels
