import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    if n > 2:
        y = 1.0  # note: the other path: float32
    else:
        y = 1  # error: 'y' is int32 here and float32 on another path
    x[i] = float(y)
