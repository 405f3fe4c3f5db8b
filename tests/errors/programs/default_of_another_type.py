import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    x[0] = min((v for v in x), default=n)  # error: default of min() is int32, expected float32
