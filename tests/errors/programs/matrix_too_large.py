import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.matrix(1.0, shape=(100000, 100000), dtype=float)  # error: wp.matrix() makes at most 65536 components
