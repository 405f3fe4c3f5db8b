import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.static(1 / 0)  # error: '1 / 0' failed: ZeroDivisionError: division by zero
