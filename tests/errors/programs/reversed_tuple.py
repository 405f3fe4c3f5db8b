import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _a in reversed((1, 2)):  # error: reversed() takes a range() in kernels
        pass
