import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = n[0:1]  # error: int32 cannot be subscripted
