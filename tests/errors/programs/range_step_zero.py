import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _a in range(0, 3, 0):  # error: the step of range() must not be 0
        pass
