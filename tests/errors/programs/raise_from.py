import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    raise ValueError("a") from None  # error: 'raise ... from' is not supported in kernels
