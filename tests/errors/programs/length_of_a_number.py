import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    y = len(n)  # error: int32 has no length  # help: arrays, vectors, matrices and tuples have one
