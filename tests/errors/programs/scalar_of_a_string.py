import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = float('1.0')  # error: float32() converts from a scalar, not from the string
