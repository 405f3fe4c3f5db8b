import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = 1 << -1  # error: a shift by -1, expected 0 to 63
