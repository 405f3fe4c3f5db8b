import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = 1e300  # error: the number 1e+300 is too large for float32  # help: write wp.float64(1e+300)
