import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for _a in range(1.5):  # error: the bounds of range() must be integers, not the float literal 1.5
        pass
