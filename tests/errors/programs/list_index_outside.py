import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    values = [1.0, 2.0]
    values[2] = 3.0  # error: index 2 is outside a list of 2 elements
