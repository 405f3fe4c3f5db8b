import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[0:2] = 1.0  # error: an index is missing: this is array[float32], not an element of it
