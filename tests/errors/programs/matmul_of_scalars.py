import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = 1.0 @ 2.0  # error: '@' does not take the float literal 1.0 and the float literal 2.0
