import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    ints = wp.zeros(shape=2, dtype=int)
    y = x if n > 0 else ints  # error: this chooses between array[float32] and array[int32]
