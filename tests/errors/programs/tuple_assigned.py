import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    values = (1.0, 2.0)
    values[0] = 3.0  # error: elements of a tuple of (the float literal 1.0, the float literal 2.0) cannot be assigned
