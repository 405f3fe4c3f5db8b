import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vector()  # error: wp.vector() needs its length  # help: write wp.vector(length=3, dtype=float)
