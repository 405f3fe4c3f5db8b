import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = float(0**-1)  # error: 0 has no negative power
