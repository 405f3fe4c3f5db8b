import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    n[0] = 1  # error: elements of int32 cannot be assigned
