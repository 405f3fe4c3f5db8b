import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = (1.0, 2.0)[n]  # error: a tuple needs one index that is known at compile time
