import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    k = 0
    while k < n:
        y = 1.0  # note: assigned here
        k += 1
    x[i] = y  # error: 'y' may have no value here: it is assigned on some paths only
