import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[1.5] = 1.0  # error: an index must be an integer, not the float literal 1.5  # help: write int(...) to convert
