import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    values = [1.0, n]
    values[n] = 3.0  # error: an index of a list of (the float literal 1.0, int32) must be known at compile time
