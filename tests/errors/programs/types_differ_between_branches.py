import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    if n > 2:
        y = x[i]  # note: the other path: float32
    else:
        y = n  # error: 'y' is int32 here and float32 on another path
    x[i] = float(y)
