import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    y = x[:: x[0]]  # error: the step of a slice must be an integer, not float32
