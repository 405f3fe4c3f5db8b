import warp as wp


@wp.kernel
def kernel(x: wp.array2d[float], n: int):
    i = wp.tid()
    x[i] = 1.0  # error: an index is missing: this is array[float32], not an element of it  # help: give one index per dimension
