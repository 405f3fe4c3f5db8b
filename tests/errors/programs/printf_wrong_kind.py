import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    wp.printf('%d', 1.5)  # error: '%d' needs an integer, not the float literal 1.5  # help: write %g, or convert with int(...)
