import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = x[0]  # note: before the loop: float32
    for k in range(n):
        if k > 2:
            y = k  # error: 'y' is int32 here and float32 on another path
    x[0] = float(y)
