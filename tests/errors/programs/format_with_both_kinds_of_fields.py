import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    print("{} {0}".format(n))  # error: the format counts some fields by itself, {}, and has the numbers of others
