import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vector(length=n, dtype=float)  # error: length of wp.vector() must be known at compile time and positive
