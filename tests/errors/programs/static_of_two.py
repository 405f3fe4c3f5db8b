import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = wp.static(1, 2)  # error: wp.static() takes one expression, got 2
