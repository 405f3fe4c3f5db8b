import warp as wp


@wp.kernel
def kernel(x: wp.array[float], n: int):
    i = wp.tid()
    x[i] = wp.static({})  # error: a dict is no value that a kernel can compute with
