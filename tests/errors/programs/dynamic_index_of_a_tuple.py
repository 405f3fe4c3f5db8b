import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = float((1.0, 2)[n])  # error: an index of a tuple of (the float literal 1.0, the int literal 2) must be known at compile time  # help: only elements of one type
