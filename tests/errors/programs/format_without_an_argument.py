import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    print("{} and {}".format(n))  # error: format() is given no argument 2 that '{}' asks for
