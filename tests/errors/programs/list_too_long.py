import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    values = [0.0] * 5000  # error: lists are written out, and this one has more than 2048 elements
