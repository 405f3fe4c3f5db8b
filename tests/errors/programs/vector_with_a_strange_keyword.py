import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.vector(1.0, len=3)  # error: wp.vector() has no parameter 'len'  # help: it has length and dtype
