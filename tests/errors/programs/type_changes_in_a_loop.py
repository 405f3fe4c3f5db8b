import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = n  # note: before the loop: int32
    for _a in range(n):
        y = x[i]  # error: 'y' becomes float32 in this loop and is int32 before it
    x[i] = float(y)
