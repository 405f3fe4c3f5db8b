import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for a in (1.0, 2.0):
        if x[i] > a:
            break
        y = a  # note: assigned here
    x[i] = y  # error: 'y' may have no value here: it is assigned on some paths only
