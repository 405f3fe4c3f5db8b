import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.matrix(1.0)  # error: wp.matrix() needs its shape  # help: write wp.matrix(..., shape=(3, 2))
