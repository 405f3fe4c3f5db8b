import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x.shape = 3  # error: 'shape' of array[float32] cannot be assigned
