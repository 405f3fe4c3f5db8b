import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vector(length=100000, dtype=float)  # error: wp.vector() makes at most 65536 components  # help: keep larger data in arrays
