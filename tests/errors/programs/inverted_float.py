import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = ~1.5  # error: '~' does not take the float literal 1.5
