import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    print("{0.x}".format(x[0]))  # error: '{0.x}' is no field that kernels know
