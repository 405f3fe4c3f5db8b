import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    assert n < 0, n  # error: the message of an assert must be a string or an f-string in kernels
