import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    for a in (1.0, 2.0):  # error: a loop over a tuple or vector cannot use break or continue
        if a > x[i]:
            break
