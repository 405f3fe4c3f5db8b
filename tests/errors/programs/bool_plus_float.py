import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = True + 1.0  # error: '+' does not take bool and the float literal 1.0
