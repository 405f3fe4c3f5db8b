import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = n
    if n > 0 and (y := x[0]) > 1.0:  # error: 'y' is float32 here and int32 on another path
        x[0] = 0.0
    x[1] = float(y)
