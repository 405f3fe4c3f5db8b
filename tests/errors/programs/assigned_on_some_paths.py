import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    if n > 5:
        y = 1.0  # note: assigned here
    x[i] = y  # error: 'y' may have no value here: it is assigned on some paths only
